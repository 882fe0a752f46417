/* A stream over a broadcast group of SRT, for the rows of `bumpless iprp torture` (spec/iprp-lab.md).
 *
 *   srt-group version
 *   srt-group receive PORT OWN,OWN OTHER,OTHER         a line "NUMBER NANOSECONDS" for each message that comes
 *   srt-group send FROM,FROM TO,TO PORT LEN US FIRST   one for each message that is sent, with the time at which it was due;
 *                                                      numbers from FIRST on
 *
 * Times are of CLOCK_BOOTTIME. Both go on until they are killed; the sender ends when its connection is lost. */
#include <arpa/inet.h>
#include <pthread.h>
#include <srt/srt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINKS = 2, LONGEST = 1316 };

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int failed(const char *what)
{
    fprintf(stderr, "srt-group: %s: %s\n", what, srt_getlasterror_str());
    return 1;
}

static struct sockaddr_in address(const char *text, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, text, &at.sin_addr) != 1) {
        fprintf(stderr, "srt-group: '%s' is no address\n", text);
        exit(2);
    }
    return at;
}

static void *take(void *argument)
{
    SRTSOCKET group = (SRTSOCKET)(intptr_t)argument;
    char message[LONGEST];
    for (;;) {
        int got = srt_recvmsg(group, message, sizeof message);
        if (got < 4)
            break;
        uint32_t number;
        memcpy(&number, message, 4);
        printf("%u %lld\n", ntohl(number), now_ns());
    }
    srt_close(group);
    return NULL;
}

static int receive(int port)
{
    SRTSOCKET listener = srt_create_socket();
    int yes = 1;
    struct sockaddr_in any = address("0.0.0.0", port);
    if (srt_setsockflag(listener, SRTO_GROUPCONNECT, &yes, sizeof yes) == SRT_ERROR)
        return failed("this library is built without bonding");
    if (srt_bind(listener, (struct sockaddr *)&any, sizeof any) == SRT_ERROR || srt_listen(listener, 16) == SRT_ERROR)
        return failed("cannot listen");
    for (;;) {
        SRTSOCKET group = srt_accept(listener, NULL, NULL);
        if (group == SRT_INVALID_SOCK)
            return failed("cannot accept");
        pthread_t thread;
        if (pthread_create(&thread, NULL, take, (void *)(intptr_t)group) == 0)
            pthread_detach(thread);
    }
}

static int send_all(char *from, char *to, int port, int len, int every_us, uint32_t number)
{
    SRTSOCKET group = srt_create_group(SRT_GTYPE_BROADCAST);
    if (group == SRT_INVALID_SOCK)
        return failed("this library is built without bonding");
    SRT_SOCKGROUPCONFIG links[LINKS];
    char *from_rest, *to_rest;
    char *one = strtok_r(from, ",", &from_rest), *other = strtok_r(to, ",", &to_rest);
    int count = 0;
    for (; one && other && count < LINKS; count++) {
        struct sockaddr_in source = address(one, 0), target = address(other, port);
        links[count] = srt_prepare_endpoint((struct sockaddr *)&source, (struct sockaddr *)&target, sizeof target);
        one = strtok_r(NULL, ",", &from_rest);
        other = strtok_r(NULL, ",", &to_rest);
    }
    if (srt_connect_group(group, links, count) == SRT_ERROR)
        return failed("cannot connect");
    char message[LONGEST] = {0};
    long long due = now_ns();
    for (;; number++) {
        uint32_t written = htonl(number);
        memcpy(message, &written, 4);
        if (srt_sendmsg(group, message, len, -1, 1) == SRT_ERROR)
            return failed("cannot send");
        printf("%u %lld\n", number, due);
        due += every_us * 1000LL;
        struct timespec until = {due / 1000000000LL, due % 1000000000LL};
        clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
    }
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (srt_startup() < 0)
        return failed("cannot start");
    if (count == 2 && !strcmp(words[1], "version")) {
        unsigned v = srt_getversion();
        printf("SRT %u.%u.%u\n", v >> 16, (v >> 8) & 255, v & 255);
        return 0;
    }
    if (count == 5 && !strcmp(words[1], "receive"))
        return receive(atoi(words[2]));
    if (count == 8 && !strcmp(words[1], "send")) {
        int len = atoi(words[5]);
        if (len >= 4 && len <= LONGEST)
            return send_all(words[2], words[3], atoi(words[4]), len, atoi(words[6]), strtoul(words[7], NULL, 10));
    }
    fprintf(stderr, "usage: srt-group version | receive PORT OWN,OWN OTHER,OTHER | send FROM,FROM TO,TO PORT LEN US FIRST\n");
    return 2;
}
