/* How generated code declares, reads and writes variables, written for the example to MATIEC's interface: a variable is
 * a value with flags, a located one a pointer that its initialisation sets. */
#ifndef ACCESSOR_H
#define ACCESSOR_H

#define __DECLARE_VAR(type, name) \
	struct { \
		type value; \
		BYTE flags; \
	} name;
#define __DECLARE_LOCATED(type, name) \
	struct { \
		type *value; \
		BYTE flags; \
	} name;

#define __INIT_VAR(name, initial, retained) name.value = initial, name.flags |= (retained) ? 4 : 0
#define __INIT_LOCATED(type, location, name, retained) \
	do { \
		extern type *location; \
		name.value = location; \
		name.flags |= (retained) ? 4 : 0; \
	} while (0)
#define __INIT_LOCATED_VALUE(name, initial) *name.value = initial

#define __GET_VAR(name) name.value
#define __GET_LOCATED(name) (*name.value)
#define __SET_VAR(prefix, name, new_value) prefix name.value = new_value
#define __SET_LOCATED(prefix, name, new_value) *prefix name.value = new_value

#endif
