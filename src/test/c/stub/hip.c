/* A library that RCCL needs. The plugin only reads its name. */
extern const int millrace_stub_of_hip;
const int millrace_stub_of_hip = 1;
