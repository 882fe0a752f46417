/* What calls the C++ that STruC++ generates (spec/sidecar.md, H-37 to H-43).
 *
 * It is compiled with the project's headers, and all that it writes is part of the state. `program.hpp` is what `bumpless
 * program build` has read of the project.
 *
 * Licensed under Apache-2.0 or MIT at your choice. */
#include "generated.hpp"

#include "plc.h"
#include "program.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#if defined(STRUCPP_THREADED)
#error "the project is compiled for threads, of which a PLC program has none here: do not define STRUCPP_THREADED"
#endif

/* What is relied on of the generator's interface. A header that is another there is of a version that is not known. */
static_assert(sizeof(strucpp::LocatedVar) == 16, "LocatedVar is another than known");
static_assert(sizeof(strucpp::LocatedVar::pointer) == sizeof(void *), "LocatedVar is another than known");
static_assert(sizeof(strucpp::TaskInstance::interval_ns) == 8, "TaskInstance is another than known");
static_assert(sizeof(strucpp::__CURRENT_TIME_NS) == 8, "__CURRENT_TIME_NS is another than known");
static_assert(strucpp::locatedVarsCount == BUMPLESS_LOCATED, "generated.hpp counts its located variables differently");

/* Made by its constructor before main(), which writes nothing but the state. */
strucpp::BUMPLESS_CONFIGURATION bumpless_configuration;

/* What each located variable held when the task began. */
static uint64_t bumpless_before[BUMPLESS_LOCATED + 1];

/* Called by headers that throw nothing; those of the known versions throw, where exceptions are on. */
#if __has_include("iec_fault.hpp")
namespace strucpp {
[[noreturn]] void iec_runtime_fault(IecFault reason, const char *context) noexcept
{
	static const char *const reasons[] = {"a null reference is followed", "an array has no such index",
	                                      "a location is none"};
	auto known = static_cast<unsigned>(reason);

	plc_stop(known < 3 ? reasons[known] : "the program cannot go on", context);
}
}
#endif

namespace {
/* Of a task without an interval, as in the runtime that the code is generated for. */
const int64_t usual_interval = 20000000;

uint64_t interval(const strucpp::TaskInstance &task)
{
	return static_cast<uint64_t>(task.interval_ns > 0 ? task.interval_ns : usual_interval);
}

/* Bytes of a located variable. */
size_t size(const strucpp::LocatedVar &it)
{
	return it.size == strucpp::LocatedSize::Bit ? 1 : size_t{1} << (static_cast<unsigned>(it.size) - 1);
}

bool is_row(const strucpp::LocatedVar &it, const bumpless_row &row)
{
	return static_cast<unsigned>(it.area) == row.area && static_cast<unsigned>(it.size) == row.size &&
	       it.byte_index == row.byte && it.bit_index == row.bit && it.pointer;
}

/* A task works on variables of its own, and sees at its beginning what others have left at their addresses. */
void copy_in()
{
	for (size_t i = 0; i < BUMPLESS_LOCATED; i++) {
		bumpless_before[i] = *bumpless_rows[i].image;
		memcpy(strucpp::locatedVars[i].pointer, &bumpless_before[i], size(strucpp::locatedVars[i]));
	}
}

/* Inputs are nobody's to write; and what a task has not changed, it must not take from another variable of that address. */
void copy_out()
{
	for (size_t i = 0; i < BUMPLESS_LOCATED; i++) {
		const strucpp::LocatedVar &it = strucpp::locatedVars[i];

		if (it.area != strucpp::LocatedArea::Input && memcmp(&bumpless_before[i], it.pointer, size(it)) != 0)
			memcpy(bumpless_rows[i].image, it.pointer, size(it));
	}
}

/* Where a task stands in the order in which those run that are due: by priority, 0 first, else as the project lists them. */
struct Place {
	int64_t priority;
	size_t resource, task;

	bool operator<(const Place &other) const
	{
		if (priority != other.priority)
			return priority < other.priority;
		return resource != other.resource ? resource < other.resource : task < other.task;
	}
};

/* Calls `what(task, place)` for each. */
template <typename What> void for_each_task(What what)
{
	for (size_t r = 0; r < bumpless_configuration.get_resource_count(); r++) {
		strucpp::ResourceInstance &resource = bumpless_configuration.get_resources()[r];

		for (size_t t = 0; t < resource.task_count; t++)
			what(resource.tasks[t], Place{resource.tasks[t].priority, r, t});
	}
}

/* The task behind `last`, or null; `last` becomes its place. */
strucpp::TaskInstance *next(Place &last)
{
	strucpp::TaskInstance *found = nullptr;
	Place first = last;

	for_each_task([&](strucpp::TaskInstance &task, const Place &place) {
		if (last < place && (!found || place < first)) {
			found = &task;
			first = place;
		}
	});
	last = first;
	return found;
}

void run(strucpp::TaskInstance &task)
{
	copy_in();
	for (size_t i = 0; i < task.program_count; i++)
		task.programs[i]->run();
	copy_out();
}
}

extern "C" void plc_start(void)
{
	/* Of several variables at one address the first one says with what that begins. */
	for (size_t i = BUMPLESS_LOCATED; i-- > 0;) {
		const strucpp::LocatedVar &it = strucpp::locatedVars[i];

		if (!is_row(it, bumpless_rows[i]))
			plc_stop("generated.hpp does not belong to the other generated files", nullptr);
		memcpy(bumpless_rows[i].image, it.pointer, size(it));
	}
}

namespace {
void run_due(const struct bumpless_cycle *cycle)
{
	Place last{INT64_MIN, 0, 0};

	strucpp::__CURRENT_TIME_NS = static_cast<int64_t>((cycle->number - 1) * cycle->period_ns);
	while (strucpp::TaskInstance *task = next(last)) {
		if ((cycle->number - 1) % (interval(*task) / cycle->period_ns) == 0)
			run(*task);
	}
}

/* Whether nothing was thrown; if not, what it says of itself. */
bool runs(const struct bumpless_cycle *cycle, char *said, size_t size)
{
	try {
		run_due(cycle);
		return true;
	} catch (const std::exception &thrown) {
		snprintf(said, size, "%s", thrown.what());
	} catch (...) {
		snprintf(said, size, "something that says nothing of itself");
	}
	return false;
}
}

extern "C" void plc_run(const struct bumpless_cycle *cycle)
{
	char said[200];

	/* Stopped outside of the handler, which has to end. */
	if (!runs(cycle, said, sizeof said))
		plc_stop("the program throws", said);
}

/* What the intervals of all tasks have in common. */
extern "C" uint64_t plc_period(void)
{
	uint64_t common = 0;

	for_each_task([&](strucpp::TaskInstance &task, const Place &) {
		uint64_t rest = interval(task);

		while (rest) {
			uint64_t divisor = rest;

			rest = common % divisor;
			common = divisor;
		}
	});
	return common;
}
