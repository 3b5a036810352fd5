/* Calls a function of the driver that the emulated CUDA lacks. */
#include <stddef.h>

enum { NOT_SUPPORTED = 801 };

int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                     int *status);

int main(void) {
  int (*function)(void);
  int error = cudaGetDriverEntryPointByVersion("cuArrayCreate", (void **) &function, 13000, 0, NULL);
  return error != 0 || function() != NOT_SUPPORTED;
}
