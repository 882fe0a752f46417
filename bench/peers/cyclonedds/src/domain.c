#include "domain.h"

#include <stdarg.h>
#include <stdio.h>

/* What makes a lost fragment known and sent again at once, instead of after tens of milliseconds; and no
 * datagram that IP must cut in pieces. */
static const char tuned_general[] = "<MaxMessageSize>1472 B</MaxMessageSize><FragmentSize>1344 B</FragmentSize>"
                                    "<MaxRexmitMessageSize>1472 B</MaxRexmitMessageSize>";
static const char tuned_internal[] =
    "<HeartbeatInterval min=\"1 ms\" minsched=\"1 ms\" max=\"100 ms\">1 ms</HeartbeatInterval>"
    "<NackDelay>0 ms</NackDelay><AckDelay>0 ms</AckDelay><PreEmptiveAckDelay>1 ms</PreEmptiveAckDelay>"
    "<AutoReschedNackDelay>10 ms</AutoReschedNackDelay>"
    "<RetransmitMergingPeriod>0 ms</RetransmitMergingPeriod>"
    "<MaxQueuedRexmitBytes>64 MB</MaxQueuedRexmitBytes>"
    "<DefragReliableMaxSamples>1024</DefragReliableMaxSamples>"
    "<SocketReceiveBufferSize max=\"8 MB\"/>"
    "<Watermarks><WhcHigh>64 MB</WhcHigh></Watermarks>";

struct writing {
    char *text;
    size_t room;
    size_t length;
};

static void add(struct writing *writing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t left = writing->length < writing->room ? writing->room - writing->length : 0;
    int written = vsnprintf(left == 0 ? NULL : writing->text + writing->length, left, format, arguments);
    va_end(arguments);
    writing->length += written < 0 ? writing->room : (size_t)written;
}

int domain_configuration(const struct peer_arguments *arguments, bool receiver, char *text, size_t room) {
    struct writing writing = {.text = text, .room = room};
    size_t networks = arguments->tuned ? arguments->locals : 1;
    add(&writing, "<CycloneDDS><Domain Id=\"any\"><General><Interfaces>");
    for (size_t i = 0; i < networks; i++)
        add(&writing, "<NetworkInterface address=\"%s\" multicast=\"false\"/>", arguments->local[i]);
    add(&writing, "</Interfaces><AllowMulticast>false</AllowMulticast>%s%s</General>",
        networks > 1 ? "<RedundantNetworking>true</RedundantNetworking>" : "",
        arguments->tuned ? tuned_general : "");
    /* The receiver's user data comes in at the port that was given. */
    add(&writing,
        "<Discovery><ParticipantIndex>%d</ParticipantIndex><Ports><Base>%u</Base><DomainGain>250</DomainGain>"
        "<ParticipantGain>2</ParticipantGain><UnicastDataOffset>0</UnicastDataOffset>"
        "<UnicastMetaOffset>1</UnicastMetaOffset><MulticastMetaOffset>4</MulticastMetaOffset>"
        "<MulticastDataOffset>5</MulticastDataOffset></Ports>",
        receiver ? 0 : 1, (unsigned)arguments->port);
    if (!receiver) {
        add(&writing, "<Peers>");
        for (size_t i = 0; i < arguments->remotes && i < networks; i++)
            add(&writing, "<Peer address=\"%s:%u\"/>", arguments->remote[i], (unsigned)arguments->port + 1);
        add(&writing, "</Peers>");
    }
    add(&writing, "</Discovery><Internal>%s</Internal></Domain></CycloneDDS>",
        arguments->tuned ? tuned_internal : "");
    return writing.length < room ? 0 : -1;
}
