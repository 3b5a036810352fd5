/*
 * Replaces libnvidia-ml.so.1 for libnccl: eight GPUs without NVLink. libnccl looks up each function by its name. A
 * handle of a device is its index plus one.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 8, SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, P2P_NOT_SUPPORTED = 5 };

typedef uintptr_t Device;

/* nvmlPciInfo_t */
typedef struct {
  char legacyBusId[16];
  unsigned domain, bus, device, pciDeviceId, subsystemId, reserved[4];
} PciInfo;

int nvmlInit_v2(void) { return SUCCESS; }
const char *nvmlErrorString(int error) { return error == NOT_SUPPORTED ? "not supported" : "error"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = DEVICES;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex(unsigned index, Device *device) {
  *device = index + 1;
  return index < DEVICES ? SUCCESS : NOT_FOUND;
}

/* The bus number of device i is i + 1; see cudaDeviceGetPCIBusId. */
int nvmlDeviceGetHandleByPciBusId(const char *id, Device *device) {
  unsigned domain, bus;
  if (sscanf(id, "%x:%x", &domain, &bus) != 2 || bus < 1 || bus > DEVICES) return NOT_FOUND;
  *device = bus;
  return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
  *major = 9;
  *minor = 0;
  return SUCCESS;
}

int nvmlDeviceGetP2PStatus(Device one, Device other, int index, int *status) {
  *status = P2P_NOT_SUPPORTED;
  return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
  memset(info, 0, sizeof *info);
  info->bus = (unsigned) device;
  info->pciDeviceId = 0x233010de;
  snprintf(info->legacyBusId, sizeof info->legacyBusId, "0000:%02X:00.0", info->bus);
  return SUCCESS;
}

int nvmlDeviceGetPcieLinkMaxSpeed(Device device, int *speed) {
  *speed = 32000;
  return SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned *generation) {
  *generation = 5;
  return SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned *width) {
  *width = 16;
  return SUCCESS;
}
