/* A library that RCCL needs. The plugin reads its name and the names of its functions, and calls none. */
extern int hipGetDevice(int *);
int hipGetDevice(int *device) {
  *device = 0;
  return 0;
}
