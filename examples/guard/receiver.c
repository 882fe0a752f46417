/* Receives setpoints, 200 in 100 ms at most, whatever else arrives: cc -I crates/product/program/c examples/guard/receiver.c
 * crates/product/program/c/bumpless_guard.c -o receiver; ./receiver 4713 200 */
#include <arpa/inet.h>
#include <bumpless_guard.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int count, char **arguments)
{
	int port = count > 1 ? atoi(arguments[1]) : 4713, capacity = count > 2 ? atoi(arguments[2]) : 200;
	const char *guard = count > 3 ? arguments[3] : NULL;
	struct bumpless_guard_terms terms = { (uint32_t)capacity, 100000000, 10 };
	char why[512], packet[2048];
	int setpoints = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in any = { 0 };

	any.sin_family = AF_INET;
	any.sin_port = htons((uint16_t)port);
	if (bind(setpoints, (struct sockaddr *)&any, sizeof(any)) < 0) {
		perror("bind");
		return 1;
	}
	/* Until the process ends. */
	if (bumpless_guard_register(setpoints, &terms, guard, why, sizeof(why)) < 0) {
		fprintf(stderr, "not guarded: %s\n", why);
		return 2;
	}
	puts("registered");
	fflush(stdout);
	while (recv(setpoints, packet, sizeof(packet), 0) >= 0)
		; /* What is to be done with a setpoint. */
	return 0;
}
