/* The program's side of registering a socket with a guard: spec/reception.md, V-80 and further.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bumpless_guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAGIC = 0x44524742, VERSION = 1, SENTENCE_MAX = 496, TIMEOUT_S = 5 };

struct request {
	uint32_t magic;
	uint32_t version;
	uint64_t period_ns;
	uint32_t capacity;
	uint32_t priority;
	uint64_t unused;
};

struct reply {
	uint32_t magic;
	uint32_t version;
	uint32_t code;
	uint32_t length;
	char sentence[SENTENCE_MAX];
};

typedef char request_has_32[sizeof(struct request) == 32 ? 1 : -1] __attribute__((unused));
typedef char reply_has_512[sizeof(struct reply) == 512 ? 1 : -1] __attribute__((unused));

/* By the code of a refusal. */
static const int errors[] = { 0, EPROTO, EINVAL, EPROTONOSUPPORT, EADDRINUSE, EDQUOT, EINVAL, ENOSPC, ENOSPC };

static int fail(int error, char *why, size_t why_size, const char *words, const char *about)
{
	if (why && why_size)
		snprintf(why, why_size, words, about);
	errno = error;
	return -1;
}

static int reach(const char *path)
{
	struct timeval timeout = { TIMEOUT_S, 0 };
	struct sockaddr_un address;
	int guard, saved;

	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	guard = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (guard < 0)
		return -1;
	if (setsockopt(guard, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
	    setsockopt(guard, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
	    connect(guard, (struct sockaddr *)&address, sizeof(address)) == 0)
		return guard;
	saved = errno;
	close(guard);
	errno = saved;
	return -1;
}

/* The request, and the socket along with it. */
static int ask(int guard, int socket, struct request *request, struct reply *reply)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} along;
	struct iovec part = { request, sizeof(*request) };
	struct msghdr message;
	struct cmsghdr *header;
	ssize_t length;

	memset(&along, 0, sizeof(along));
	memset(&message, 0, sizeof(message));
	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = along.bytes;
	message.msg_controllen = sizeof(along.bytes);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &socket, sizeof(int));
	do
		length = sendmsg(guard, &message, MSG_NOSIGNAL);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -1;
	do
		length = recv(guard, reply, sizeof(*reply), 0);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -1;
	if (length != (ssize_t)sizeof(*reply) || reply->magic != MAGIC || reply->version != VERSION ||
	    reply->code >= sizeof(errors) / sizeof(*errors)) {
		errno = EPROTO;
		return -1;
	}
	reply->sentence[SENTENCE_MAX - 1] = 0;
	return 0;
}

int bumpless_guard_register(int socket, const struct bumpless_guard_terms *terms, const char *path, char *why, size_t why_size)
{
	struct request request = { MAGIC, VERSION, terms->period_ns, terms->capacity, terms->priority, 0 };
	struct reply reply;
	int guard;

	if (!path)
		path = BUMPLESS_GUARD_SOCKET;
	guard = reach(path);
	if (guard < 0 && (errno == ENOENT || errno == ECONNREFUSED))
		return fail(errno, why, why_size,
			    "no guard takes registrations at %s: start `bumpless guard run` with a section [registration], or name its socket",
			    path);
	if (guard < 0 && (errno == EACCES || errno == EPERM))
		return fail(EACCES, why, why_size,
			    "this user may not register with the guard at %s: be a member of the group that its section [registration] names",
			    path);
	if (guard < 0)
		return fail(errno, why, why_size, "the guard is not reached: %s", strerror(errno));
	if (ask(guard, socket, &request, &reply) == 0) {
		if (reply.code == 0)
			return guard;
		close(guard);
		return fail(errors[reply.code], why, why_size, "%s", reply.sentence);
	}
	fail(errno, why, why_size, "the guard did not answer as this version of the library expects: %s", strerror(errno));
	{
		int saved = errno;

		close(guard);
		errno = saved;
	}
	return -1;
}
