/* Which NCCL calls: a process may have loaded several, and each has a logger of its own. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>

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
    library = dlopen(NULL, RTLD_LAZY); /* the program itself has no name to be found by */
  if (!library)
    return 0;
  /* A handle also finds what the library depends on, which may be another NCCL. */
  void *symbol = dlsym(library, "ncclGetVersion");
  ncclResult_t (*getVersion)(int *) = symbol;
  if (!symbol || millraceLibrary(symbol) != found.dli_fbase || getVersion(&version) != ncclSuccess)
    version = 0;
  dlclose(library);
  return version;
}
