/* How much of a socket's packets is received, in the manner of setsockopt: a program in C or C++ beside a guard of reception
 * (`bumpless guard run` with a section [registration]).
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#ifndef BUMPLESS_GUARD_H
#define BUMPLESS_GUARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where programs look for the guard. */
#define BUMPLESS_GUARD_SOCKET "/run/bumpless-guard.sock"

/* On which terms packets of a socket are received. What comes beyond them is dropped before the kernel makes a buffer of it. */
struct bumpless_guard_terms {
	uint32_t capacity;  /* packets in a period at most, on each guarded interface; above zero */
	uint64_t period_ns; /* after which the capacity is whole again: 1,000,000 to 60,000,000,000 */
	uint8_t priority;   /* up to what the guard's file permits; the higher, the more urgent. It orders queues of drivers that have
	                     * some. On Linux it has no effect yet: packets wait in sockets, in the order in which they came, and status
	                     * alone shows it */
};

/* Has this host's guard receive the packets of a socket, of UDP or TCP and bound, on these terms. A connected one stands for what its
 * peer sends, any other for its port. path: NULL, or the guard's socket for registrations if it is not the usual one.
 *
 * Returns a descriptor: the registration holds until that is closed, the socket is, or the process ends. It becomes readable when the
 * guard ends it, and is not passed on by exec. Else returns -1 with errno, and the reason in words in why (of why_size bytes, or NULL):
 *
 *   EINVAL           capacity, period or priority are none that there can be, or are not permitted
 *   EPROTONOSUPPORT  it is no socket of UDP or TCP that is bound on this host
 *   EADDRINUSE       another flow has its port
 *   EDQUOT           its packets would take more of the processor than is permitted
 *   ENOSPC           as many are registered as may be, or the kernel has no room
 *   ENOENT, ECONNREFUSED  no guard takes registrations there
 *   EACCES           this user may not register
 *   EPROTO           the guard has another version
 *
 * and whatever socket(2), connect(2), sendmsg(2) and recv(2) give. The calling thread waits for the guard, for 5 s at most. */
int bumpless_guard_register(int socket, const struct bumpless_guard_terms *terms, const char *path, char *why, size_t why_size);

#ifdef __cplusplus
}
#endif

#endif
