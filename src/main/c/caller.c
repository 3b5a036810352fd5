/*
 * Identifies the library that calls this library. A process may have loaded several NCCLs, and each has its own logger.
 */
#define _GNU_SOURCE
#include "imports.h"
#include "shim.h"

#include <ctype.h>
#include <dlfcn.h>
#include <string.h>

const void *millraceLibrary(const void *code) {
  Dl_info found;
  return dladdr(code, &found) ? found.dli_fbase : NULL;
}

/* Returns a function of the library that contains the given code; NULL if this library has no function of that name. */
static void *function_of(const void *code, const char *name) {
  Dl_info found;
  void *function = NULL;
  if (!dladdr(code, &found))
    return NULL;
  void *library = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    library = dlopen(NULL, RTLD_LAZY); /* dlopen does not find the program itself by its name */
  if (library) {
    function = dlsym(library, name);
    dlclose(library);
  }
  /* The search also covers the library's dependencies, which may include another NCCL. */
  return function && millraceLibrary(function) == found.dli_fbase ? function : NULL;
}

int millraceNcclVersion(const void *code) {
  int version = 0;
  ncclResult_t (*getVersion)(int *) = function_of(code, "ncclGetVersion");
  return getVersion && getVersion(&version) == ncclSuccess ? version : 0;
}

static int begins_with(const char *name, const char *prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Returns whether a library imports a function of HIP. */
static int imports_hip(const struct millraceObject *library) {
  for (int table = 0; table < 2; table++)
    for (size_t i = 0; library->relocations[table] && i < library->bytes[table] / sizeof(ElfW(Rela)); i++) {
      const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(library->relocations[table][i].r_info)];
      const char *name = library->strings + symbol->st_name;
      if (symbol->st_shndx == SHN_UNDEF && begins_with(name, "hip") && isupper((unsigned char)name[3]))
        return 1;
    }
  return 0;
}

/*
 * Returns the vendor by a library's name and by its use of HIP. The name is the SONAME, or the file's name if there is
 * no SONAME. A library without a name of this kind may contain a statically linked NCCL, or a statically linked RCCL,
 * which calls HIP.
 */
static enum millraceVendor named_vendor(const struct link_map *map, const char *path) {
  const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
  struct millraceObject library = {.base = map->l_addr};
  int readable = millraceReadTables(&library, map->l_ld), hip = 0;
  for (const ElfW(Dyn) *entry = map->l_ld; readable && entry->d_tag != DT_NULL; entry++) {
    const char *name = library.strings + entry->d_un.d_val;
    if (entry->d_tag == DT_SONAME)
      own = name;
    hip |= entry->d_tag == DT_NEEDED && begins_with(name, "libamdhip64");
  }
  if (begins_with(own, "librccl"))
    return MILLRACE_RCCL;
  if (strstr(own, "ccl.so") && !begins_with(own, "libnccl"))
    return MILLRACE_UNKNOWN;
  return hip || (readable && imports_hip(&library)) ? MILLRACE_RCCL : MILLRACE_NCCL;
}

/* The link map stays valid while its library calls. NCCLX has NCCL's name, and functions that NCCL does not have. */
enum millraceVendor millraceVendor(const void *code, const char **path) {
  Dl_info found;
  struct link_map *map = NULL;
  *path = NULL;
  if (!dladdr1(code, &found, (void **)&map, RTLD_DL_LINKMAP) || !map)
    return MILLRACE_NCCL;
  *path = *map->l_name ? map->l_name : found.dli_fname;
  enum millraceVendor vendor = named_vendor(map, *path);
  return vendor == MILLRACE_NCCL && function_of(code, "ncclCommGetUniqueHash") ? MILLRACE_NCCLX : vendor;
}

/*
 * NCCLX, and RCCL 2.27.7 and newer, have a level ERROR before WARN (nccl_common.h). An RCCL without a version counts as
 * a new RCCL. Builds of RCCL 2.27.7 without this level export the same functions as builds with this level. The logger
 * of NCCLX 2.27 has one more parameter before the line.
 */
int millraceWarnLevel(const void *code) {
  const char *path;
  enum millraceVendor vendor = millraceVendor(code, &path);
  int version = millraceNcclVersion(code);
  if (vendor == MILLRACE_NCCLX && version && version < 22800)
    return 0;
  return vendor == MILLRACE_NCCLX || (vendor == MILLRACE_RCCL && (!version || version >= 22707)) ? NCCL_LOG_WARN + 1
                                                                                                 : NCCL_LOG_WARN;
}
