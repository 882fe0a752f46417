/* The program's side of the memory that host and program share: spec/sidecar.md.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bumpless.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CANNOT_BEGIN = 64, HEADER_SIZE = 4096, STATE_ALIGNMENT = 65536, MESSAGE_MAX = 320 };
enum command { ATTACH = 1, EXECUTE = 2, END = 3, CONVERT = 4 };
enum { RANGES_MAX = 448 };
#define ALL UINT32_MAX
enum result { DONE = 0, FAILED = 1, OTHER_VERSION = 2, MISFIT = 3 };

struct header {
	uint64_t magic;
	uint32_t version;
	uint32_t program_version;
	uint64_t total;
	uint32_t inputs;
	uint32_t outputs;
	uint64_t inputs_at;
	uint64_t outputs_at;
	uint64_t state_at;
	uint64_t state_max;
	uint32_t request;
	uint32_t command;
	uint64_t cycle;
	uint64_t period;
	uint32_t track;
	uint32_t unused_host;
	uint64_t old_version;
	uint64_t old_len;
	uint32_t unused_host_end[4];
	uint32_t answer;
	uint32_t result;
	uint64_t state_len;
	uint64_t state_version;
	uint32_t program_inputs;
	uint32_t program_outputs;
	uint64_t program_period;
	uint64_t tracked;
	uint32_t message_len;
	uint32_t changes;
	uint32_t converts;
	uint32_t unused_program;
	char message[MESSAGE_MAX];
	struct {
		uint32_t first, count;
	} ranges[RANGES_MAX];
};

#define AT(field, offset) \
	typedef char at_##field[offsetof(struct header, field) == (offset) ? 1 : -1] __attribute__((unused))
AT(total, 16);
AT(inputs_at, 32);
AT(request, 64);
AT(cycle, 72);
AT(track, 88);
AT(old_version, 96);
AT(old_len, 104);
AT(answer, 128);
AT(state_len, 136);
AT(program_period, 160);
AT(message_len, 176);
AT(converts, 184);
AT(message, 192);
AT(ranges, 512);

static struct header *shared;
static int pagemap = -1;

void bumpless_say(const char *reason)
{
	size_t length = strlen(reason);

	if (!shared)
		return;
	if (length > MESSAGE_MAX)
		length = MESSAGE_MAX;
	memcpy(shared->message, reason, length);
	shared->message_len = (uint32_t)length;
}

static uint32_t answer(enum result result)
{
	uint32_t number;

	shared->result = result;
	number = __atomic_add_fetch(&shared->answer, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shared->answer, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return number;
}

static uint32_t next_request(uint32_t answered)
{
	for (;;) {
		uint32_t request = __atomic_load_n(&shared->request, __ATOMIC_ACQUIRE);

		if (request != answered)
			return request;
		/* Any end of the wait leads to another look. */
		syscall(SYS_futex, &shared->request, FUTEX_WAIT, request, NULL, NULL, 0);
	}
}

static int cannot_begin(const char *why)
{
	fprintf(stderr, "bumpless: %s\n", why);
	return CANNOT_BEGIN;
}

static uint64_t rounded(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* Maps the memory; NULL, with the reason, if it cannot be used. */
static const char *attach(int *memory)
{
	const char *told = getenv("BUMPLESS_MEMORY");
	uint64_t outputs_at, state_at;
	struct stat file;
	char *end;
	long number;

	if (!told)
		return "this is a control program: a Bumpless host starts it and gives it memory (BUMPLESS_MEMORY is not set); "
		       "try it with `bumpless program test`";
	errno = 0;
	number = strtol(told, &end, 10);
	if (errno || end == told || *end || number < 3 || number > INT_MAX)
		return "BUMPLESS_MEMORY is no descriptor's number";
	*memory = (int)number;
	/* What this program starts itself has no business with it. */
	if (fcntl(*memory, F_SETFD, FD_CLOEXEC) || fstat(*memory, &file))
		return "BUMPLESS_MEMORY names no open descriptor";
	if (file.st_size < HEADER_SIZE)
		return "the memory is none of a Bumpless host";
	shared = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
	if (shared == MAP_FAILED) {
		shared = NULL;
		return "the memory cannot be mapped";
	}
	if (memcmp(&shared->magic, "bumpless", 8)) {
		shared = NULL;
		return "the memory is none of a Bumpless host";
	}
	shared->program_version = BUMPLESS_PROTOCOL;
	if (shared->version != BUMPLESS_PROTOCOL) {
		answer(OTHER_VERSION);
		return "the host speaks another version of the protocol: build the program with the library of the host's "
		       "release";
	}
	outputs_at = rounded(HEADER_SIZE + 8 * (uint64_t)shared->inputs, 64);
	state_at = rounded(outputs_at + 8 * (uint64_t)shared->outputs, STATE_ALIGNMENT);
	if (shared->total != (uint64_t)file.st_size || shared->inputs_at != HEADER_SIZE ||
	    shared->outputs_at != outputs_at || shared->state_at != state_at || shared->state_max > shared->total ||
	    state_at + rounded(shared->state_max, STATE_ALIGNMENT) != shared->total)
		return "the sizes in the memory contradict one another";
	return NULL;
}

static int refuse(const char *why)
{
	bumpless_say(why);
	answer(MISFIT);
	return cannot_begin(why);
}

/* Has the kernel note which pages of the state are written (H-17); the host does without if it cannot. */
static void track(void *state, size_t length)
{
	struct {
		uint64_t api, features, ioctls;
	} api = {0xAA, 1 | 1 << 12 | 1 << 13 | 1 << 15, 0};
	struct {
		uint64_t start, length, mode, ioctls;
	} range = {(uint64_t)(uintptr_t)state, length, 2, 0};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

	if (fd < 0)
		return;
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	/* It stays open: closing it would end the tracking. */
	if (pagemap < 0 || ioctl(fd, _IOWR(0xAA, 0x3F, api), &api) || ioctl(fd, _IOWR(0xAA, 0x00, range), &range)) {
		close(fd);
		return;
	}
	shared->tracked = 1;
}

/* Tells the host which pages of the state were written since this was last called. */
static void tell_changes(void *state, size_t length)
{
	static struct {
		uint64_t start, end, categories;
	} regions[RANGES_MAX];
	struct {
		uint64_t size, flags, start, end, walk_end, regions, length, pages_max, inverted, mask, any_of, wanted;
	} scan = {sizeof scan, 1 | 2, (uint64_t)(uintptr_t)state, 0, 0, (uint64_t)(uintptr_t)regions, RANGES_MAX, 0, 0, 2, 0, 2};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int count, i;

	shared->changes = ALL;
	/* While the host copies everything, nothing needs to be protected. */
	if (!shared->tracked || !shared->track)
		return;
	scan.end = scan.start + length;
	count = ioctl(pagemap, _IOWR('f', 16, scan), &scan);
	if (count < 0 || scan.walk_end < scan.end)
		return;
	for (i = 0; i < count; i++) {
		shared->ranges[i].first = (uint32_t)((regions[i].start - scan.start) / page);
		shared->ranges[i].count = (uint32_t)((regions[i].end - regions[i].start) / page);
	}
	shared->changes = (uint32_t)count;
}

/* Where the state is; NULL if it cannot be where the program wants it. */
static void *place(const struct bumpless_program *program, int memory)
{
	char *there = (char *)shared + shared->state_at;
	size_t length = rounded(program->state_size, (uint64_t)sysconf(_SC_PAGESIZE));

	if (!program->state || !length)
		return there;
	memcpy(there, program->state, program->state_size);
	if (mmap(program->state, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory,
	         (off_t)shared->state_at) != program->state)
		return NULL;
	return program->state;
}

static enum result execute(const struct bumpless_program *program, void *state)
{
	const struct bumpless_cycle cycle = {shared->cycle, shared->period, shared->cycle * shared->period};

	shared->message_len = 0;
	return program->step(&cycle, (const double *)((char *)shared + shared->inputs_at),
	                     (double *)((char *)shared + shared->outputs_at), state)
	               ? FAILED
	               : DONE;
}

/* Makes the state from one of another version, which stands in its place; first are the bytes of the initial state. */
static enum result convert(const struct bumpless_program *program, void *state, const void *first)
{
	const char *there = (const char *)shared + shared->state_at;
	size_t length = shared->old_len;
	enum result result;
	void *old;

	shared->message_len = 0;
	if (!program->convert) {
		bumpless_say("it converts no states of other versions");
		return FAILED;
	}
	old = length > shared->state_max ? NULL : malloc(length ? length : 1);
	if (!old) {
		bumpless_say("the state to be converted is longer than any may be, or there is no memory for it");
		return FAILED;
	}
	memcpy(old, there, length);
	memcpy(state, first, program->state_size);
	result = program->convert(shared->old_version, old, length, state) ? FAILED : DONE;
	free(old);
	return result;
}

/* A copy of the initial state for convert: start alone does not make it where the program brings its own bytes. */
static void *copy_of(const void *state, size_t length)
{
	void *copy = malloc(length ? length : 1);

	return copy ? memcpy(copy, state, length) : NULL;
}

int bumpless_run(const struct bumpless_program *program)
{
	char too_large[120];
	void *first = NULL;
	enum result result;
	uint32_t answered;
	int memory = -1;
	size_t length;
	void *state;
	const char *wrong = attach(&memory);

	if (wrong)
		return cannot_begin(wrong);
	shared->state_len = program->state_size;
	shared->state_version = program->state_version;
	shared->program_inputs = program->inputs;
	shared->program_outputs = program->outputs;
	shared->program_period = program->period_ns;
	shared->converts = program->convert != NULL;
	if (program->state_size > shared->state_max) {
		snprintf(too_large, sizeof too_large, "its state has %zu bytes, and the configuration allows %llu",
		         program->state_size, (unsigned long long)shared->state_max);
		return refuse(too_large);
	}
	/* Were there fewer than the program uses, it would write into what comes behind: the host says so. */
	if (program->inputs != shared->inputs || program->outputs != shared->outputs) {
		answer(DONE);
		return cannot_begin("the configuration names another number of inputs or outputs");
	}
	state = place(program, memory);
	if (!state)
		return refuse("its state cannot be where it wants it: not at the beginning of a page, or no memory");
	if (program->start)
		program->start(state);
	if (program->convert && !(first = copy_of(state, program->state_size)))
		return refuse("there is no memory for a copy of its initial state");
	length = rounded(program->state_size, (uint64_t)sysconf(_SC_PAGESIZE));
	if (shared->track)
		track(state, length);
	close(memory);
	answered = answer(DONE);
	for (;;) {
		answered = next_request(answered);
		switch (shared->command) {
		case EXECUTE:
			result = execute(program, state);
			tell_changes(state, length);
			answer(result);
			break;
		case CONVERT:
			result = convert(program, state, first);
			tell_changes(state, length);
			answer(result);
			break;
		case END:
			answer(DONE);
			return 0;
		default:
			bumpless_say("the host's command is unknown");
			answer(FAILED);
		}
	}
}
