/* A stream over kronosnet, for the rows of `bumpless iprp torture` (spec/iprp-lab.md).
 *
 *   knet-stream version
 *   knet-stream receive PORT OWN,OWN OTHER,OTHER         a line "NUMBER NANOSECONDS" for each message that comes
 *   knet-stream send FROM,FROM TO,TO PORT LEN US FIRST   one for each message that is sent, with the time at which it was due;
 *                                                        numbers from FIRST on
 *
 * Both links are active: each carries every message. Timers are those that corosync sets by default (a token of 3 s). Times are of
 * CLOCK_BOOTTIME. Both go on until they are killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <libknet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINKS = 2, LONGEST = 1316, SENDER = 1, RECEIVER = 2 };
/* corosync.conf(5): an interval of token / (2 x pongs), a timeout of token / pongs, two pongs. */
enum { INTERVAL_MS = 750, TIMEOUT_MS = 1500, PRECISION = 2048, PONGS = 2 };

static int8_t channel = 0;
static int data;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *failed(const char *what)
{
    fprintf(stderr, "knet-stream: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_storage address(const char *text, int port)
{
    struct sockaddr_storage all = {0};
    struct sockaddr_in *at = (struct sockaddr_in *)&all;
    at->sin_family = AF_INET;
    at->sin_port = htons(port);
    if (inet_pton(AF_INET, text, &at->sin_addr) != 1) {
        fprintf(stderr, "knet-stream: '%s' is no address\n", text);
        exit(2);
    }
    return all;
}

static void note(void *unused, int fd, int8_t on, uint8_t sending, int error, int number)
{
    (void)unused, (void)fd, (void)on, (void)sending, (void)error, (void)number;
}

/* Both links to the other host, ready. */
static knet_handle_t start(int own, int other, char *from, char *to, int port)
{
    knet_handle_t handle = knet_handle_new(own, 0, 0);
    if (!handle)
        return failed("cannot start");
    channel = -1;
    if (knet_handle_enable_sock_notify(handle, NULL, note) || knet_handle_add_datafd(handle, &data, &channel))
        return failed("cannot open its socket");
    if (knet_host_add(handle, other) || knet_host_set_policy(handle, other, KNET_LINK_POLICY_ACTIVE))
        return failed("cannot add the other host");
    char *from_rest, *to_rest;
    char *one = strtok_r(from, ",", &from_rest), *two = strtok_r(to, ",", &to_rest);
    for (int link = 0; one && two && link < LINKS; link++) {
        struct sockaddr_storage here = address(one, port), there = address(two, port);
        if (knet_link_set_config(handle, other, link, KNET_TRANSPORT_UDP, &here, &there, 0) ||
            knet_link_set_ping_timers(handle, other, link, INTERVAL_MS, TIMEOUT_MS, PRECISION) ||
            knet_link_set_pong_count(handle, other, link, PONGS) || knet_link_set_enable(handle, other, link, 1))
            return failed("cannot bring a link up");
        one = strtok_r(NULL, ",", &from_rest);
        two = strtok_r(NULL, ",", &to_rest);
    }
    if (knet_handle_setfwd(handle, 1))
        return failed("cannot forward");
    return handle;
}

static _Noreturn void receive(knet_handle_t handle)
{
    char message[LONGEST];
    struct pollfd ready = {.fd = data, .events = POLLIN};
    for (;;) {
        poll(&ready, 1, -1);
        if (knet_recv(handle, message, sizeof message, channel) < 4)
            continue;
        uint32_t number;
        memcpy(&number, message, 4);
        printf("%u %lld\n", ntohl(number), now_ns());
    }
}

static _Noreturn void send_all(knet_handle_t handle, int len, int every_us, uint32_t number)
{
    char message[LONGEST] = {0};
    long long due = now_ns();
    for (;; number++) {
        uint32_t written = htonl(number);
        memcpy(message, &written, 4);
        /* What its socket has no room for at present is lost, as any datagram. */
        knet_send(handle, message, len, channel);
        printf("%u %lld\n", number, due);
        due += every_us * 1000LL;
        struct timespec until = {due / 1000000000LL, due % 1000000000LL};
        clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
    }
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 2 && !strcmp(words[1], "version")) {
        printf("kronosnet %s\n", KNET_PACKAGE);
        return 0;
    }
    if (count == 5 && !strcmp(words[1], "receive"))
        receive(start(RECEIVER, SENDER, words[3], words[4], atoi(words[2])));
    if (count == 8 && !strcmp(words[1], "send")) {
        int len = atoi(words[5]);
        if (len >= 4 && len <= LONGEST) {
            knet_handle_t handle = start(SENDER, RECEIVER, words[2], words[3], atoi(words[4]));
            send_all(handle, len, atoi(words[6]), strtoul(words[7], NULL, 10));
        }
    }
    fprintf(stderr, "usage: knet-stream version | receive PORT OWN,OWN OTHER,OTHER | send FROM,FROM TO,TO PORT LEN US FIRST\n");
    return 2;
}
