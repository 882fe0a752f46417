/* What a peer in C provides, and what the conversation gives it. The conversation is single: `../src/lib.rs`
 * speaks it for every peer in C. */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_arguments {
    const char *const *local; /* own addresses, in the order of the networks */
    size_t locals;
    const char *const *remote; /* the receiver's addresses; none when receiving */
    size_t remotes;
    uint16_t port;
    size_t channels;
    size_t max_size; /* bytes of the largest state */
    bool many;       /* a connection per channel */
    bool tuned;
};

/* Provided by the peer. Functions that return int return 0, or anything else with the reason in `reason`. */
const char *peer_version(void);
void peer_settings(const struct peer_arguments *arguments, char *text, size_t room);
int peer_receive(const struct peer_arguments *arguments, char *reason, size_t room);
int peer_connect(const struct peer_arguments *arguments, char *reason, size_t room);
/* Sends one state; need not wait for its acknowledgement. Called by one thread per channel at a time. */
int peer_send(size_t channel, const void *state, size_t length, char *reason, size_t room);

/* Provided by the conversation. What the receiver sends back as acknowledgement of a whole state: */
uint64_t peer_digest(const void *state, size_t length);
/* The sender has read an acknowledgement: */
void peer_acknowledged(size_t channel, uint64_t digest);

#endif
