/* Identifies the NCCL that calls. A process may have loaded several, and each has its own logger. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

const void *millraceLibrary(const void *code) {
  Dl_info found;
  return dladdr(code, &found) ? found.dli_fbase : NULL;
}

int millraceNcclVersion(const void *code) {
  Dl_info found;
  int version = 0;
  if (!dladdr(code, &found))
    return 0;
  void *library = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    library = dlopen(NULL, RTLD_LAZY); /* the program itself cannot be found by name */
  if (!library)
    return 0;
  /* The search also covers the library's dependencies, which may include another NCCL. */
  void *symbol = dlsym(library, "ncclGetVersion");
  ncclResult_t (*getVersion)(int *) = symbol;
  if (!symbol || millraceLibrary(symbol) != found.dli_fbase || getVersion(&version) != ncclSuccess)
    version = 0;
  dlclose(library);
  return version;
}

static int begins_with(const char *name, const char *prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Recognizes RCCL in a program, too: such a program needs HIP. The link map stays valid while its library calls. */
const char *millraceRccl(const void *code) {
  Dl_info found;
  struct link_map *map = NULL;
  const char *strings = NULL;
  if (!dladdr1(code, &found, (void **)&map, RTLD_DL_LINKMAP) || !map)
    return NULL;
  for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_STRTAB)
      strings = (const char *)entry->d_un.d_ptr;
  for (const ElfW(Dyn) *entry = map->l_ld; strings && entry && entry->d_tag != DT_NULL; entry++)
    if ((entry->d_tag == DT_SONAME && begins_with(strings + entry->d_un.d_val, "librccl")) ||
        (entry->d_tag == DT_NEEDED && begins_with(strings + entry->d_un.d_val, "libamdhip64")))
      return *map->l_name ? map->l_name : found.dli_fname;
  return NULL;
}
