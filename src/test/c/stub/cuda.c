/* As much of libcuda as tells whether a device gets on with its work. With STUB_CUDA_BUSY set it never does. */
#include <stdlib.h>
#include <unistd.h>

static int synchronizations;

int cuCtxGetCurrent(void **context) {
  *context = &synchronizations;
  return 0;
}

int cuCtxSetCurrent(void *context) {
  return context == &synchronizations ? 0 : 201;
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = 0;
  return 0;
}

int cuCtxSynchronize(void) {
  while (getenv("STUB_CUDA_BUSY"))
    pause();
  __atomic_add_fetch(&synchronizations, 1, __ATOMIC_RELAXED);
  return 0;
}

/* How often the device was found to have done its work. */
int stubSynchronizations(void) {
  return __atomic_load_n(&synchronizations, __ATOMIC_RELAXED);
}
