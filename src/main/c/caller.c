/* Identifies the library that calls. A process may have loaded several NCCLs, and each has its own logger. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

const void *millraceLibrary(const void *code) {
  Dl_info found;
  return dladdr(code, &found) ? found.dli_fbase : NULL;
}

/* Returns a function of the library that contains some code; NULL if this library has no function of that name. */
static void *function_of(const void *code, const char *name) {
  Dl_info found;
  void *function = NULL;
  if (!dladdr(code, &found))
    return NULL;
  void *library = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    library = dlopen(NULL, RTLD_LAZY); /* the program itself cannot be found by name */
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

/*
 * Returns the vendor that a library's dynamic section names. A program with a statically linked RCCL also needs HIP. A
 * library without an own name of this kind may contain a statically linked NCCL.
 */
static enum millraceVendor named_vendor(const struct link_map *map) {
  enum millraceVendor vendor = MILLRACE_NCCL;
  const char *strings = NULL;
  for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_STRTAB)
      strings = (const char *)entry->d_un.d_ptr;
  for (const ElfW(Dyn) *entry = map->l_ld; strings && entry && entry->d_tag != DT_NULL; entry++) {
    const char *name = strings + entry->d_un.d_val;
    if ((entry->d_tag == DT_SONAME && begins_with(name, "librccl")) ||
        (entry->d_tag == DT_NEEDED && begins_with(name, "libamdhip64")))
      return MILLRACE_RCCL;
    if (entry->d_tag == DT_SONAME && strstr(name, "ccl.so") && !begins_with(name, "libnccl"))
      vendor = MILLRACE_UNKNOWN;
  }
  return vendor;
}

/* The link map stays valid while its library calls. NCCLX has NCCL's name, and functions that NCCL does not have. */
enum millraceVendor millraceVendor(const void *code, const char **path) {
  Dl_info found;
  struct link_map *map = NULL;
  *path = NULL;
  if (!dladdr1(code, &found, (void **)&map, RTLD_DL_LINKMAP) || !map)
    return MILLRACE_NCCL;
  *path = *map->l_name ? map->l_name : found.dli_fname;
  enum millraceVendor vendor = named_vendor(map);
  return vendor == MILLRACE_NCCL && function_of(code, "ncclCommGetUniqueHash") ? MILLRACE_NCCLX : vendor;
}

/*
 * NCCLX 2.29 and 2.30, and RCCL 2.27.7 and newer, have a level ERROR before WARN (nccl_common.h). An RCCL without a
 * version counts as a new one.
 */
int millraceWarnLevel(const void *code) {
  const char *path;
  enum millraceVendor vendor = millraceVendor(code, &path);
  int version = vendor == MILLRACE_RCCL ? millraceNcclVersion(code) : 0;
  return vendor == MILLRACE_NCCLX || (vendor == MILLRACE_RCCL && (!version || version >= 22707)) ? NCCL_LOG_WARN + 1
                                                                                                 : NCCL_LOG_WARN;
}
