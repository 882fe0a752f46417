/* SCTP by usrsctp, encapsulated in UDP (RFC 6951). A channel is a stream of one association, or an
 * association of its own; a state is a message. Both ends bind all their addresses, so that an association
 * has a path for each network. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usrsctp.h>

#include "assembly.h"

/* Bytes of the library's own socket buffers. The sending one must hold whole messages. */
#define SMALLEST_SEND_BUFFER ((size_t)256 * 1024)
#define LARGEST_SEND_BUFFER ((size_t)64 * 1024 * 1024)
/* Milliseconds; the paper's optimized settings have the first two (its table 14). */
#define TUNED_MINIMAL_RTO 1
#define TUNED_SACK_DELAY 1
#define TUNED_INITIAL_RTO 10
#define TUNED_MAXIMAL_RTO 100
#define TUNED_HEARTBEAT 1000
/* Timeouts after which another path is taken. */
#define TUNED_PATH_RETRIES 1
#define TUNED_LONE_PATH_RETRIES 1000
#define TUNED_ASSOCIATION_RETRIES 1000
#define MOST_ADDRESSES 2
#define ACKNOWLEDGEMENT sizeof(uint64_t)

static size_t max_size;
static bool many;
static struct socket **connections; /* the sender's, one or one for each channel */
static pthread_mutex_t assembling = PTHREAD_MUTEX_INITIALIZER;

const char *peer_version(void) { return PEER_VERSION; }

void peer_settings(const struct peer_arguments *arguments, char *text, size_t room) {
    const char *tuned = arguments->tuned
                            ? "; RTO.min 1 ms, RTO.initial 10 ms, RTO.max 100 ms, a SACK for each packet, SACK delay 1 ms, I bit, heartbeat 1 s"
                            : ", else defaults (RTO.min 1 s, SACK delay 200 ms for every second packet)";
    const char *paths = "";
    if (arguments->locals > 1)
        paths = arguments->tuned
                    ? "; two paths, the second for retransmission and failover after one retry"
                    : "; two paths, the second for retransmission and failover";
    snprintf(text, room, "UDP encapsulation, message per transfer, SCTP_NODELAY, send buffer for whole states%s%s",
             tuned, paths);
}

static int fail(char *reason, size_t room, const char *what) {
    snprintf(reason, room, "%s: %s", what, strerror(errno));
    return -1;
}

/* The receiver: a part of a state has come. The library's buffer is ours to free. */
static int state_arrived(struct socket *socket, union sctp_sockstore from, void *data, size_t length,
                         struct sctp_rcvinfo info, int flags, void *unused) {
    (void)from;
    (void)unused;
    if (data == NULL)
        return 1;
    uint64_t digest = 0;
    bool whole = false;
    if (!(flags & MSG_NOTIFICATION)) {
        pthread_mutex_lock(&assembling);
        struct assembly *assembly = assembly_of(info.rcv_assoc_id, info.rcv_sid, max_size);
        if (assembly != NULL && (flags & MSG_EOR) && assembly->length == 0) {
            digest = peer_digest(data, length);
            whole = true;
        } else if (assembly != NULL && assembly_add(assembly, data, length, max_size) && (flags & MSG_EOR)) {
            digest = peer_digest(assembly->bytes, assembly->length);
            whole = true;
        }
        if (assembly != NULL && (flags & MSG_EOR))
            assembly->length = 0;
        pthread_mutex_unlock(&assembling);
    }
    free(data);
    if (whole) {
        struct sctp_sndinfo to = {.snd_sid = info.rcv_sid, .snd_assoc_id = info.rcv_assoc_id};
        if (usrsctp_sendv(socket, &digest, sizeof digest, NULL, 0, &to, sizeof to, SCTP_SENDV_SNDINFO, 0) < 0)
            perror("usrsctp: cannot acknowledge");
    }
    return 1;
}

/* The sender: an acknowledgement has come. `connection` is its place in `connections`. */
static int acknowledgement_arrived(struct socket *socket, union sctp_sockstore from, void *data, size_t length,
                                   struct sctp_rcvinfo info, int flags, void *connection) {
    (void)socket;
    (void)from;
    if (data == NULL)
        return 1;
    if (!(flags & MSG_NOTIFICATION) && length == ACKNOWLEDGEMENT) {
        uint64_t digest;
        memcpy(&digest, data, sizeof digest);
        peer_acknowledged(many ? (size_t)(uintptr_t)connection : info.rcv_sid, digest);
    }
    free(data);
    return 1;
}

static void print(const char *format, ...) { (void)format; }

/* Starts the library; `encapsulation` is the own UDP port. */
static void start(const struct peer_arguments *arguments, uint16_t encapsulation) {
    max_size = arguments->max_size;
    many = arguments->many;
    usrsctp_init(encapsulation, NULL, print);
    usrsctp_sysctl_set_sctp_blackhole(2);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    /* One state of each channel beside what is not yet acknowledged of the ones before: with less, the
     * library refuses a message (EAGAIN) for ever. */
    size_t states = many ? 2 : arguments->channels + 1;
    size_t room = arguments->max_size * states;
    if (room > LARGEST_SEND_BUFFER)
        room = LARGEST_SEND_BUFFER;
    if (room < 2 * arguments->max_size)
        room = 2 * arguments->max_size;
    if (room < SMALLEST_SEND_BUFFER)
        room = SMALLEST_SEND_BUFFER;
    usrsctp_sysctl_set_sctp_sendspace((uint32_t)room);
    if (!arguments->tuned)
        return;
    usrsctp_sysctl_set_sctp_rto_min_default(TUNED_MINIMAL_RTO);
    usrsctp_sysctl_set_sctp_rto_initial_default(TUNED_INITIAL_RTO);
    usrsctp_sysctl_set_sctp_rto_max_default(TUNED_MAXIMAL_RTO);
    usrsctp_sysctl_set_sctp_assoc_rtx_max_default(TUNED_ASSOCIATION_RETRIES);
    usrsctp_sysctl_set_sctp_delayed_sack_time_default(TUNED_SACK_DELAY);
    usrsctp_sysctl_set_sctp_sack_freq_default(1);
    /* Timeouts in a row close a path until its next heartbeat; with one path there is no other to take. */
    usrsctp_sysctl_set_sctp_path_rtx_max_default(arguments->locals > 1 ? TUNED_PATH_RETRIES : TUNED_LONE_PATH_RETRIES);
    usrsctp_sysctl_set_sctp_heartbeat_interval_default(TUNED_HEARTBEAT);
}

static size_t fill(struct sockaddr_in *into, const char *const *texts, size_t count, uint16_t port) {
    if (count > MOST_ADDRESSES)
        count = MOST_ADDRESSES;
    for (size_t i = 0; i < count; i++) {
        into[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        inet_pton(AF_INET, texts[i], &into[i].sin_addr);
    }
    return count;
}

/* What both ends set on a socket before it listens or connects. */
static int prepare(struct socket *socket, const struct peer_arguments *arguments, uint16_t sctp_port,
                   uint16_t remote_encapsulation, char *reason, size_t room) {
    int on = 1;
    if (usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) < 0)
        return fail(reason, room, "SCTP_NODELAY");
    uint16_t streams = (uint16_t)(arguments->channels < 65535 ? arguments->channels : 65535);
    struct sctp_initmsg initial = {.sinit_num_ostreams = streams, .sinit_max_instreams = streams};
    if (usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_INITMSG, &initial, sizeof initial) < 0)
        return fail(reason, room, "SCTP_INITMSG");
    struct sctp_udpencaps encapsulation = {.sue_port = htons(remote_encapsulation)};
    encapsulation.sue_address.ss_family = AF_INET;
    if (remote_encapsulation != 0 && usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT,
                                                        &encapsulation, sizeof encapsulation) < 0)
        return fail(reason, room, "SCTP_REMOTE_UDP_ENCAPS_PORT");
    struct sockaddr_in own[MOST_ADDRESSES];
    size_t count = fill(own, arguments->local, arguments->locals, sctp_port);
    if (usrsctp_bindx(socket, (struct sockaddr *)own, (int)count, SCTP_BINDX_ADD_ADDR) < 0)
        return fail(reason, room, "cannot bind to the own addresses");
    return 0;
}

int peer_receive(const struct peer_arguments *arguments, char *reason, size_t room) {
    start(arguments, arguments->port);
    struct socket *socket =
        usrsctp_socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP, state_arrived, NULL, 0, NULL);
    if (socket == NULL)
        return fail(reason, room, "no socket");
    if (prepare(socket, arguments, arguments->port, 0, reason, room) != 0)
        return -1;
    int backlog = (int)arguments->channels + 1;
    return usrsctp_listen(socket, backlog) < 0 ? fail(reason, room, "cannot listen") : 0;
}

static int connect_one(size_t place, const struct peer_arguments *arguments, char *reason, size_t room) {
    struct socket *socket = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, acknowledgement_arrived, NULL, 0,
                                           (void *)(uintptr_t)place);
    if (socket == NULL)
        return fail(reason, room, "no socket");
    connections[place] = socket;
    /* A socket with a callback is made non-blocking. */
    if (usrsctp_set_non_blocking(socket, 0) < 0)
        return fail(reason, room, "cannot make the socket blocking");
    if (prepare(socket, arguments, 0, arguments->port, reason, room) != 0)
        return -1;
    struct sockaddr_in remote[MOST_ADDRESSES];
    size_t count = fill(remote, arguments->remote, arguments->remotes, arguments->port);
    sctp_assoc_t association;
    if (usrsctp_connectx(socket, (struct sockaddr *)remote, (int)count, &association) < 0)
        return fail(reason, room, "cannot connect");
    return 0;
}

int peer_connect(const struct peer_arguments *arguments, char *reason, size_t room) {
    /* Both ends may live in one namespace: the sender's encapsulation has the next port. */
    start(arguments, (uint16_t)(arguments->port + 1));
    size_t count = arguments->many ? arguments->channels : 1;
    connections = calloc(count, sizeof *connections);
    if (connections == NULL)
        return fail(reason, room, "no memory");
    for (size_t place = 0; place < count; place++)
        if (connect_one(place, arguments, reason, room) != 0)
            return -1;
    return 0;
}

int peer_send(size_t channel, const void *state, size_t length, char *reason, size_t room) {
    struct sctp_sndinfo to = {.snd_sid = many ? 0 : (uint16_t)channel};
    if (usrsctp_sysctl_get_sctp_sack_freq_default() == 1)
        to.snd_flags = SCTP_SACK_IMMEDIATELY;
    struct socket *socket = connections[many ? channel : 0];
    ssize_t sent = usrsctp_sendv(socket, state, length, NULL, 0, &to, sizeof to, SCTP_SENDV_SNDINFO, 0);
    if (sent < 0 || (size_t)sent != length)
        return fail(reason, room, "cannot send");
    return 0;
}
