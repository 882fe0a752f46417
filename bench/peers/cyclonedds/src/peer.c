/* DDS by Cyclone: reliable, keep-last 1. A channel is an instance (key) of one topic, or with many connections
 * a topic of its own with its own writers and readers; the receiver answers by a topic of acknowledgements. */
#include "peer.h"

#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "domain.h"
#include "topics.h"

#define DOMAIN 0
#define CONFIGURATION 4096
/* How long the two ends look for each other. */
#define MATCHING DDS_SECS(20)
#define LOOK_EVERY DDS_MSECS(5)
/* How long a write may wait for room at the other end. */
#define BLOCKING DDS_SECS(10)

/* Both directions of one connection. */
struct connection {
    dds_entity_t writer;
    dds_entity_t reader;
};

static bool many;
static struct connection *connections;

const char *peer_version(void) { return PEER_VERSION; }

void peer_settings(const struct peer_arguments *arguments, char *text, size_t room) {
    snprintf(text, room, "reliable, keep last 1, write from the listener, unicast discovery%s%s",
             arguments->tuned ? "; messages of 1472 B, heartbeats from 1 ms, NACK and ACK delay 0, no merging of "
                                "retransmissions, high watermark and retransmit queue 64 MB"
                              : ", else defaults (messages of 14720 B in IP fragments, NACK delay 100 ms)",
             arguments->locals < 2 ? ""
             : arguments->tuned    ? "; redundant networking over both networks"
                                   : "; uses the first network only");
}

static int fail(char *reason, size_t room, const char *what, dds_return_t code) {
    snprintf(reason, room, "%s: %s", what, dds_strretcode(-code));
    return -1;
}

/* The receiver: states have come. `argument` is the writer of acknowledgements. */
static void states_arrived(dds_entity_t reader, void *argument) {
    struct connection *connection = argument;
    void *samples[1] = {NULL};
    dds_sample_info_t information[1];
    while (dds_take(reader, samples, information, 1, 1) > 0) {
        const State *state = samples[0];
        if (information[0].valid_data) {
            Acknowledgement acknowledgement = {.channel = state->channel,
                                               .digest = peer_digest(state->bytes._buffer, state->bytes._length)};
            dds_return_t result = dds_write(connection->writer, &acknowledgement);
            if (result != DDS_RETCODE_OK)
                fprintf(stderr, "cyclonedds: cannot acknowledge: %s\n", dds_strretcode(-result));
        }
        dds_return_loan(reader, samples, 1);
    }
}

/* The sender: acknowledgements have come. */
static void acknowledgements_arrived(dds_entity_t reader, void *unused) {
    (void)unused;
    Acknowledgement acknowledgement;
    void *samples[1] = {&acknowledgement};
    dds_sample_info_t information[1];
    while (dds_take(reader, samples, information, 1, 1) > 0)
        if (information[0].valid_data)
            peer_acknowledged(acknowledgement.channel, acknowledgement.digest);
}

static dds_entity_t make_topic(dds_entity_t participant, const dds_topic_descriptor_t *type, const char *name,
                               size_t place) {
    char full[64];
    snprintf(full, sizeof full, "%s_%zu", name, place);
    return dds_create_topic(participant, type, full, NULL, NULL);
}

/* The first failure among entities, or 0. */
static dds_return_t first_failure(const dds_entity_t *entities, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (entities[i] < 0)
            return entities[i];
    return 0;
}

static dds_return_t open_connection(dds_entity_t participant, bool receiver, size_t place) {
    struct connection *connection = &connections[place];
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, BLOCKING);
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
    dds_entity_t states = make_topic(participant, &State_desc, "State", place);
    dds_entity_t acknowledgements = make_topic(participant, &Acknowledgement_desc, "Acknowledgement", place);
    dds_listener_t *listener = dds_create_listener(connection);
    dds_lset_data_available(listener, receiver ? states_arrived : acknowledgements_arrived);
    connection->writer = dds_create_writer(participant, receiver ? acknowledgements : states, qos, NULL);
    connection->reader = dds_create_reader(participant, receiver ? states : acknowledgements, qos, listener);
    dds_delete_listener(listener);
    dds_delete_qos(qos);
    const dds_entity_t made[] = {states, acknowledgements, connection->writer, connection->reader};
    return first_failure(made, sizeof made / sizeof *made);
}

static int open_all(const struct peer_arguments *arguments, bool receiver, char *reason, size_t room) {
    char configuration[CONFIGURATION];
    if (domain_configuration(arguments, receiver, configuration, sizeof configuration) != 0) {
        snprintf(reason, room, "the configuration is longer than %d bytes", CONFIGURATION);
        return -1;
    }
    dds_entity_t domain = dds_create_domain(DOMAIN, configuration);
    if (domain < 0)
        return fail(reason, room, "cannot create the domain", domain);
    dds_entity_t participant = dds_create_participant(DOMAIN, NULL, NULL);
    if (participant < 0)
        return fail(reason, room, "cannot create a participant", participant);
    many = arguments->many;
    size_t count = many ? arguments->channels : 1;
    connections = calloc(count, sizeof *connections);
    if (connections == NULL)
        return fail(reason, room, "connections", DDS_RETCODE_OUT_OF_RESOURCES);
    for (size_t place = 0; place < count; place++) {
        dds_return_t result = open_connection(participant, receiver, place);
        if (result < 0)
            return fail(reason, room, "cannot create a reader or writer", result);
    }
    return 0;
}

/* Whether the other end has found a connection's writer and reader. */
static bool matched(const struct connection *connection) {
    dds_instance_handle_t other;
    return dds_get_matched_subscriptions(connection->writer, &other, 1) > 0 &&
           dds_get_matched_publications(connection->reader, &other, 1) > 0;
}

int peer_receive(const struct peer_arguments *arguments, char *reason, size_t room) {
    return open_all(arguments, true, reason, room);
}

int peer_connect(const struct peer_arguments *arguments, char *reason, size_t room) {
    if (open_all(arguments, false, reason, room) != 0)
        return -1;
    dds_time_t end = dds_time() + MATCHING;
    size_t count = many ? arguments->channels : 1;
    for (size_t place = 0; place < count; place++)
        while (!matched(&connections[place])) {
            if (dds_time() > end)
                return fail(reason, room, "the receiver was not found", DDS_RETCODE_TIMEOUT);
            dds_sleepfor(LOOK_EVERY);
        }
    return 0;
}

int peer_send(size_t channel, const void *state, size_t length, char *reason, size_t room) {
    State sample = {.channel = (uint32_t)channel};
    sample.bytes._maximum = sample.bytes._length = (uint32_t)length;
    /* Cyclone does not write to what it sends. */
    sample.bytes._buffer = (uint8_t *)(uintptr_t)state;
    dds_return_t result = dds_write(connections[many ? channel : 0].writer, &sample);
    return result == DDS_RETCODE_OK ? 0 : fail(reason, room, "cannot write", result);
}
