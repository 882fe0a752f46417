/* A stream of numbered datagrams in the second kernel (linux-prp.init).
 *
 *   prp-stream send ADDRESS PORT PER_SECOND SECONDS SKIPPED   tells how many count: those after so many seconds
 *   prp-stream receive PORT SECONDS                           "CAME DOUBLED" of those that count
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { LEN = 280, MOST = 1 << 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int send_all(const char *to, int port, int rate, double seconds, double skipped)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, to, &at.sin_addr);
    uint32_t message[LEN / 4] = {0};
    unsigned counted = 0, left = 0, number = 0;
    for (double begin = now(), due = begin; due < begin + seconds; due += 1.0 / rate) {
        double wait = due - now();
        if (wait > 0) {
            struct timespec t = {(time_t)wait, (long)((wait - (time_t)wait) * 1e9)};
            nanosleep(&t, NULL);
        }
        int counts = due - begin >= skipped;
        message[0] = htonl(number++);
        message[1] = htonl(counts);
        /* What the host refuses is lost; a host that refuses all that counts has no stream. */
        left += sendto(s, message, LEN, 0, (struct sockaddr *)&at, sizeof at) == LEN && counts;
        counted += counts;
    }
    if (!left) {
        perror("prp-stream: cannot send");
        return 1;
    }
    printf("%u\n", counted);
    return 0;
}

static int receive(int port, double seconds)
{
    static unsigned char times[MOST];
    int s = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval look = {0, 50000};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    if (bind(s, (struct sockaddr *)&at, sizeof at)) {
        perror("prp-stream: cannot receive");
        return 1;
    }
    uint32_t message[LEN / 4];
    for (double end = now() + seconds; now() < end;) {
        if (recv(s, message, sizeof message, 0) < LEN || !message[1])
            continue;
        uint32_t number = ntohl(message[0]);
        if (number < MOST && times[number] < 255)
            times[number]++;
    }
    unsigned came = 0, doubled = 0;
    for (int i = 0; i < MOST; i++) {
        came += times[i] > 0;
        doubled += times[i] > 1;
    }
    printf("%u %u\n", came, doubled);
    return 0;
}

int main(int count, char **words)
{
    if (count == 7 && !strcmp(words[1], "send"))
        return send_all(words[2], atoi(words[3]), atoi(words[4]), atof(words[5]), atof(words[6]));
    if (count == 4 && !strcmp(words[1], "receive"))
        return receive(atoi(words[2]), atof(words[3]));
    return 2;
}
