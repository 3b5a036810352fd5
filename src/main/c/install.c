/* Stores the function that Java installs. */
#include "async_error.h"
#include "descriptors.h"
#include "shim.h"

/* Null until Java installs it. The release store in install pairs with the acquire load below. */
static millraceCall_t installed;

millraceCall_t millraceInstalled(void) {
  millraceCall_t call = __atomic_load_n(&installed, __ATOMIC_ACQUIRE);
  return call && millraceStackFits() ? call : NULL;
}

void millraceForget(void) {
  __atomic_store_n(&installed, NULL, __ATOMIC_RELEASE);
}

ncclResult_t millraceInstallUpcalls(int interface, millraceCall_t call, const struct millraceDowncalls **shim) {
  millraceCall_t none = NULL;
  if (interface != MILLRACE_PLUGIN_INTERFACE)
    return ncclInvalidUsage;
  millraceKeepDescriptors(0);
  millraceKnowHandler();
  *shim = &millraceDowncalls;
  __atomic_compare_exchange_n(&installed, &none, call, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  return ncclSuccess;
}
