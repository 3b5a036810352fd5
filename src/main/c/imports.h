/* The import tables of loaded objects. An object calls a function of another object through an entry of its table. */
#ifndef MILLRACE_IMPORTS_H
#define MILLRACE_IMPORTS_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__aarch64__)
#define MILLRACE_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define MILLRACE_GLOB_DAT R_AARCH64_GLOB_DAT
#define MILLRACE_ABSOLUTE R_AARCH64_ABS64
#else
#define MILLRACE_JUMP_SLOT R_X86_64_JUMP_SLOT
#define MILLRACE_GLOB_DAT R_X86_64_GLOB_DAT
#define MILLRACE_ABSOLUTE R_X86_64_64
#endif

/* A loaded object. Its first relocation table has the functions that may be resolved at their first call. */
struct millraceObject {
  uintptr_t base, begin, end, relro_begin, relro_end;
  const ElfW(Sym) *symbols;
  const char *strings;
  const ElfW(Rela) *relocations[2];
  size_t bytes[2];
};

/*
 * Describes an object. Returns 0 if it has no imports. The description is valid during a callback of dl_iterate_phdr.
 */
int millraceReadObject(const struct dl_phdr_info *info, struct millraceObject *object);

/*
 * Adds to an object, whose base is set, the tables that a dynamic section names. Returns 0 if the object has no
 * imports.
 */
int millraceReadTables(struct millraceObject *object, const ElfW(Dyn) *dynamic);

/* Returns whether an address lies in an object. */
int millraceObjectHas(const struct millraceObject *object, const void *address);

/* Returns the table entry of an import by its relocation; null if the relocation does not belong to an import. */
uintptr_t *millraceImport(const struct millraceObject *object, const ElfW(Rela) *relocation);

/* Changes an import, also in memory that ld.so has protected. */
void millraceStoreImport(const struct millraceObject *object, uintptr_t *slot, uintptr_t value);

#endif
