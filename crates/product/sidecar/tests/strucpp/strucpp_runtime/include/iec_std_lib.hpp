// As much of the interface of STruC++'s headers as the project in this folder and Bumpless use, written by hand: names, members
// and meanings are theirs, since generated code and Bumpless rely on them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iec_fault.hpp"

namespace strucpp {

enum class LocatedArea : uint8_t { Input, Output, Memory };
enum class LocatedSize : uint8_t { Bit, Byte, Word, DWord, LWord };

struct LocatedVar {
	LocatedArea area;
	LocatedSize size;
	uint16_t byte_index;
	uint8_t bit_index;
	uint8_t unused[3];
	void *pointer;
};

// A value that a debugger can force.
template <typename T> class IECVar {
public:
	using value_type = T;

	IECVar() = default;
	IECVar(T initial) { value_ = initial; }
	IECVar(const IECVar &) = delete;

	IECVar &operator=(T value)
	{
		if (!forced_)
			value_ = value;
		return *this;
	}
	IECVar &operator=(const IECVar &other) { return *this = other.get(); }
	operator T() const { return get(); }
	T get() const
	{
		if (forced_)
			return forced_value_;
		return value_;
	}
	T *raw_ptr() { return &value_; }

private:
	// Bumpless relies on these names (H-44), and on the value being the first.
	T value_{};
	bool forced_ = false;
	T forced_value_{};
};

using IEC_BOOL = IECVar<bool>;
using IEC_INT = IECVar<int16_t>;
using IEC_DINT = IECVar<int32_t>;
using IEC_UINT = IECVar<uint16_t>;
using IEC_REAL = IECVar<float>;
using IEC_LREAL = IECVar<double>;
using IEC_TIME = IECVar<int64_t>;

template <typename V> class GlobalVar {
public:
	V value;

	template <typename T> explicit GlobalVar(T initial) : value(initial) {}
};

template <typename T, int Lower, int Upper> class Array1D {
public:
	T &at(int index)
	{
		if (index < Lower || index > Upper)
			iec_runtime_fault(IecFault::ArrayBounds, "A");
		return of_[index - Lower];
	}

private:
	T of_[Upper - Lower + 1];
};

struct ProgramBase {
	virtual ~ProgramBase() = default;
	virtual void run() = 0;
};

struct TaskInstance {
	const char *name = nullptr;
	int64_t interval_ns = 0;
	int32_t priority = 0;
	ProgramBase **programs = nullptr;
	size_t program_count = 0;

	TaskInstance() = default;
	TaskInstance(const char *called, int64_t each, int32_t rank, ProgramBase **first, size_t many)
	{
		name = called;
		interval_ns = each;
		priority = rank;
		programs = first;
		program_count = many;
	}
};

struct ResourceInstance {
	const char *name = nullptr;
	const char *processor = nullptr;
	TaskInstance *tasks = nullptr;
	size_t task_count = 0;

	ResourceInstance() = default;
	ResourceInstance(const char *called, const char *on, TaskInstance *first, size_t many)
	{
		name = called;
		processor = on;
		tasks = first;
		task_count = many;
	}
};

struct ConfigurationInstance {
	virtual ~ConfigurationInstance() = default;
	virtual const char *get_name() const = 0;
	virtual ResourceInstance *get_resources() = 0;
	virtual size_t get_resource_count() const = 0;
};

// Time since the start, the same for a whole cycle.
inline int64_t __CURRENT_TIME_NS = 0;

inline int64_t TIME() { return __CURRENT_TIME_NS; }

} // namespace strucpp
