/* SCTP by usrsctp, encapsulated in UDP (RFC 6951). */
#include "end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <usrsctp.h>

/* Milliseconds. The shortest timeout is that of the study's programs that reconnect, the first one that of RFC 9260, 16. */
#define MINIMAL_RTO 50
#define INITIAL_RTO 1000
#define MAXIMAL_RTO 1000
#define HEARTBEAT 1000
/* A path is left after its first timeout, and taken again when it answers a heartbeat (RFC 7829, 3: PFMR of 0); it is dead after six
 * timeouts, and the association stays for as long as a run takes. */
#define FAILURES_BEFORE_OTHER_PATH 0
#define PATH_RETRIES 5
#define ASSOCIATION_RETRIES 100

static struct socket *association;
static struct sockaddr_in server[2];
static void (*on_message)(const uint8_t *message, size_t length);

static void quiet(const char *format, ...) { (void)format; }

static const char *fail(const char *what) {
    static char reason[160];
    snprintf(reason, sizeof reason, "%s: %s", what, strerror(errno));
    return reason;
}

static void start(uint16_t encapsulation) {
    usrsctp_init(encapsulation, NULL, quiet);
    usrsctp_sysctl_set_sctp_blackhole(2);
    usrsctp_sysctl_set_sctp_rto_min_default(MINIMAL_RTO);
    usrsctp_sysctl_set_sctp_rto_initial_default(INITIAL_RTO);
    usrsctp_sysctl_set_sctp_rto_max_default(MAXIMAL_RTO);
    usrsctp_sysctl_set_sctp_path_pf_threshold(FAILURES_BEFORE_OTHER_PATH);
    usrsctp_sysctl_set_sctp_path_rtx_max_default(PATH_RETRIES);
    usrsctp_sysctl_set_sctp_assoc_rtx_max_default(ASSOCIATION_RETRIES);
    usrsctp_sysctl_set_sctp_heartbeat_interval_default(HEARTBEAT);
    usrsctp_sysctl_set_sctp_delayed_sack_time_default(1);
    usrsctp_sysctl_set_sctp_sack_freq_default(1);
}

static bool fill(struct sockaddr_in into[2], const char *const texts[2], uint16_t port) {
    for (int i = 0; i < 2; i++) {
        into[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        if (inet_pton(AF_INET, texts[i], &into[i].sin_addr) != 1)
            return false;
    }
    return true;
}

static const char *prepare(struct socket *socket, const char *const own[2], uint16_t port, uint16_t encapsulation) {
    int on = 1;
    if (usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) < 0)
        return fail("SCTP_NODELAY");
    struct sctp_udpencaps remote = {.sue_port = htons(encapsulation)};
    remote.sue_address.ss_family = AF_INET;
    if (encapsulation != 0 &&
        usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &remote, sizeof remote) < 0)
        return fail("SCTP_REMOTE_UDP_ENCAPS_PORT");
    struct sockaddr_in addresses[2];
    if (!fill(addresses, own, port))
        return "an own address is none of IPv4";
    if (usrsctp_bindx(socket, (struct sockaddr *)addresses, 2, SCTP_BINDX_ADD_ADDR) < 0)
        return fail("cannot bind to the own addresses");
    return NULL;
}

/* The library's buffer is ours to free. */
static int message_returns(struct socket *socket, union sctp_sockstore from, void *data, size_t length,
                           struct sctp_rcvinfo info, int flags, void *unused) {
    (void)from;
    (void)unused;
    if (data == NULL)
        return 1;
    if (!(flags & MSG_NOTIFICATION)) {
        struct sctp_sndinfo to = {.snd_sid = info.rcv_sid, .snd_assoc_id = info.rcv_assoc_id};
        usrsctp_sendv(socket, data, length, NULL, 0, &to, sizeof to, SCTP_SENDV_SNDINFO, 0);
    }
    free(data);
    return 1;
}

static int answer_arrived(struct socket *socket, union sctp_sockstore from, void *data, size_t length,
                          struct sctp_rcvinfo info, int flags, void *unused) {
    (void)socket;
    (void)from;
    (void)info;
    (void)unused;
    if (data == NULL)
        return 1;
    if (!(flags & MSG_NOTIFICATION))
        on_message(data, length);
    free(data);
    return 1;
}

const char *end_serve(const char *const own[2], uint16_t port) {
    start(port);
    struct socket *socket = usrsctp_socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP, message_returns, NULL, 0, NULL);
    if (socket == NULL)
        return fail("no socket");
    const char *failed = prepare(socket, own, port, 0);
    if (failed != NULL)
        return failed;
    return usrsctp_listen(socket, 64) < 0 ? fail("cannot listen") : NULL;
}

const char *end_connect(const char *const own[2], const char *const remote[2], uint16_t port, uint16_t encapsulation,
                        void (*heard)(const uint8_t *message, size_t length)) {
    start(encapsulation);
    on_message = heard;
    association = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, answer_arrived, NULL, 0, NULL);
    if (association == NULL)
        return fail("no socket");
    /* A socket with a callback is made non-blocking. */
    if (usrsctp_set_non_blocking(association, 0) < 0)
        return fail("cannot make the socket blocking");
    const char *failed = prepare(association, own, 0, port);
    if (failed != NULL)
        return failed;
    struct sockaddr_in addresses[2];
    if (!fill(addresses, remote, port))
        return "an address of the server is none of IPv4";
    sctp_assoc_t id;
    if (usrsctp_connectx(association, (struct sockaddr *)addresses, 2, &id) < 0)
        return fail("cannot connect");
    /* What it has no room for is refused: a sender that waits would send late what comes after. */
    if (usrsctp_set_non_blocking(association, 1) < 0)
        return fail("cannot make the socket non-blocking");
    memcpy(server, addresses, sizeof server);
    return NULL;
}

/* Whether an address of the server answers what is sent to it. */
static bool answers(const struct sockaddr_in *address) {
    struct sctp_paddrinfo info = {0};
    memcpy(&info.spinfo_address, address, sizeof *address);
    socklen_t length = sizeof info;
    return usrsctp_getsockopt(association, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &length) == 0 &&
           (info.spinfo_state & SCTP_ACTIVE) && !(info.spinfo_state & SCTP_UNCONFIRMED) && info.spinfo_srtt > 0;
}

const char *end_is_ready(bool *ready) {
    struct sctp_status status = {0};
    socklen_t length = sizeof status;
    if (usrsctp_getsockopt(association, IPPROTO_SCTP, SCTP_STATUS, &status, &length) < 0)
        return fail("SCTP_STATUS");
    struct sockaddr_in primary;
    memcpy(&primary, &status.sstat_primary.spinfo_address, sizeof primary);
    if (primary.sin_addr.s_addr != server[0].sin_addr.s_addr)
        return "the association went to the backup before anything was sent";
    *ready = answers(&server[0]) && answers(&server[1]);
    return NULL;
}

void end_abort(void) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    usrsctp_setsockopt(association, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    usrsctp_close(association);
}

const char *end_send(const uint8_t *message, size_t length) {
    struct sctp_sndinfo to = {.snd_flags = SCTP_SACK_IMMEDIATELY};
    ssize_t sent = usrsctp_sendv(association, message, length, NULL, 0, &to, sizeof to, SCTP_SENDV_SNDINFO, 0);
    return sent < 0 || (size_t)sent != length ? fail("cannot send") : NULL;
}
