/* Keeps the functions that Java fills in. */
#include "shim.h"

#include <pthread.h>

static struct millraceUpcalls storage;
/* Null until storage is complete: the release store in install pairs with the acquire load below. */
static const struct millraceUpcalls *installed;
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;

const struct millraceUpcalls *millraceInstalled(void) {
  return __atomic_load_n(&installed, __ATOMIC_ACQUIRE);
}

ncclResult_t millraceInstallUpcalls(int interface, const struct millraceUpcalls *upcalls) {
  if (interface != MILLRACE_PLUGIN_INTERFACE)
    return ncclInvalidUsage;
  pthread_mutex_lock(&installing);
  if (!installed) {
    storage = *upcalls;
    __atomic_store_n(&installed, &storage, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&installing);
  return ncclSuccess;
}
