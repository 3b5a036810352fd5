/* The import tables of loaded objects. */
#define _GNU_SOURCE
#include "imports.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * ld.so has made most addresses in dynamic sections absolute. Addresses in a read-only section stay relative, as in the
 * kernel's own object (the vDSO) and in libraries that were linked with -z rodynamic.
 */
static const void *address_of(const struct millraceObject *object, const ElfW(Dyn) *entry) {
  return (const void *)(entry->d_un.d_ptr < object->base ? object->base + entry->d_un.d_ptr : entry->d_un.d_ptr);
}

int millraceReadTables(struct millraceObject *object, const ElfW(Dyn) *dynamic) {
  size_t relatives = 0;
  for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
    switch (dynamic->d_tag) {
    case DT_SYMTAB: object->symbols = address_of(object, dynamic); break;
    case DT_STRTAB: object->strings = address_of(object, dynamic); break;
    case DT_JMPREL: object->relocations[0] = address_of(object, dynamic); break;
    case DT_PLTRELSZ: object->bytes[0] = dynamic->d_un.d_val; break;
    case DT_RELA: object->relocations[1] = address_of(object, dynamic); break;
    case DT_RELASZ: object->bytes[1] = dynamic->d_un.d_val; break;
    case DT_RELACOUNT: relatives = dynamic->d_un.d_val; break;
    }
  /* Relative relocations come first, and have no symbols. */
  if (object->relocations[1] && relatives * sizeof(ElfW(Rela)) <= object->bytes[1]) {
    object->relocations[1] += relatives;
    object->bytes[1] -= relatives * sizeof(ElfW(Rela));
  }
  return object->symbols && object->strings;
}

int millraceReadObject(const struct dl_phdr_info *info, struct millraceObject *object) {
  const ElfW(Dyn) *dynamic = NULL;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  *object = (struct millraceObject){.base = info->dlpi_addr, .begin = UINTPTR_MAX};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t begin = object->base + part->p_vaddr, end = begin + part->p_memsz;
    if (part->p_type == PT_DYNAMIC) {
      dynamic = (const ElfW(Dyn) *)begin;
    } else if (part->p_type == PT_GNU_RELRO) {
      object->relro_begin = begin & ~(page - 1); /* the range is rounded as in ld.so */
      object->relro_end = end & ~(page - 1);
    } else if (part->p_type == PT_LOAD) {
      object->begin = begin < object->begin ? begin : object->begin;
      object->end = end > object->end ? end : object->end;
    }
  }
  return millraceReadTables(object, dynamic);
}

int millraceObjectHas(const struct millraceObject *object, const void *address) {
  return object->begin <= (uintptr_t)address && (uintptr_t)address < object->end;
}

uintptr_t *millraceImport(const struct millraceObject *object, const ElfW(Rela) *relocation) {
  unsigned type = ELF64_R_TYPE(relocation->r_info);
  return type == MILLRACE_JUMP_SLOT || type == MILLRACE_GLOB_DAT || (type == MILLRACE_ABSOLUTE && relocation->r_addend == 0)
             ? (uintptr_t *)(object->base + relocation->r_offset)
             : NULL;
}

/* A protected page may still be writable while ld.so loads the object. ld.so then makes the page read-only itself. */
static int is_read_only(uintptr_t address) {
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512], mode[5] = "";
  int found = 0;
  while (maps && !found && fgets(line, sizeof line, maps)) {
    uintptr_t begin, end;
    found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, mode) == 3 && begin <= address &&
            address < end;
  }
  if (maps)
    fclose(maps);
  return found && mode[1] != 'w';
}

void millraceStoreImport(const struct millraceObject *object, uintptr_t *slot, uintptr_t value) {
  uintptr_t address = (uintptr_t)slot, size = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *page = (void *)(address & ~(size - 1));
  if (address < object->relro_begin || address >= object->relro_end) {
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  } else if (is_read_only(address) && mprotect(page, size, PROT_READ | PROT_WRITE) == 0) {
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    mprotect(page, size, PROT_READ);
  }
}
