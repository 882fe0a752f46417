/* One end of an association with two addresses. Functions return NULL, or why not; one of each kind in a process. */
#ifndef END_H
#define END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Listens at both addresses and sends back what comes. `port` is SCTP's and UDP's. */
const char *end_serve(const char *const own[2], uint16_t port);

/* Connects to `remote`. `heard` has each message that comes, on a thread of the library's. `encapsulation`: the own UDP port. */
const char *end_connect(const char *const own[2], const char *const remote[2], uint16_t port, uint16_t encapsulation,
                        void (*heard)(const uint8_t *message, size_t length));

/* Whether both addresses of the server answer, and messages go over the network. */
const char *end_is_ready(bool *ready);

/* Ends the association at both ends at once. */
void end_abort(void);

/* Sends a message, or says that there is no room for it. */
const char *end_send(const uint8_t *message, size_t length);

#endif
