/*
 * Numbers of algorithms, protocols and network device kinds, which NCCL's kernels, proxies and plugins share (facts:
 * plugin/nccl_tuner.h, nccl_device/net_device.h).
 */
#ifndef MILLRACE_NCCL_ALGORITHMS_H
#define MILLRACE_NCCL_ALGORITHMS_H

#include <stddef.h>

#define NCCL_ALGO_UNDEF -1
#define NCCL_ALGO_TREE 0
#define NCCL_ALGO_RING 1
#define NCCL_ALGO_COLLNET_DIRECT 2
#define NCCL_ALGO_COLLNET_CHAIN 3
#define NCCL_ALGO_NVLS 4
#define NCCL_ALGO_NVLS_TREE 5
#define NCCL_ALGO_PAT 6
#define NCCL_NUM_ALGORITHMS 7

#define NCCL_PROTO_UNDEF -1
#define NCCL_PROTO_LL 0
#define NCCL_PROTO_LL128 1
#define NCCL_PROTO_SIMPLE 2
#define NCCL_NUM_PROTOCOLS 3

/* Kind of a plugin's device handle. 2.30 adds 4, GPI. */
typedef enum ncclNetDeviceType {
  NCCL_NET_DEVICE_HOST = 0,
  NCCL_NET_DEVICE_UNPACK = 1,
  NCCL_NET_DEVICE_GIN_PROXY = 2,
  NCCL_NET_DEVICE_GIN_GDAKI = 3
} ncclNetDeviceType;

#define NCCL_NET_DEVICE_INVALID_VERSION 0x0
#define NCCL_NET_DEVICE_UNPACK_VERSION 0x7
#define NCCL_NET_MTU_SIZE 4096

/*
 * Result of a plugin's connect or accept for the kernels, unchanged from v7 to v12. With needsProxyProgress 0, NCCL's
 * own proxy thread does not serve the connection.
 */
typedef struct ncclNetDeviceHandle_t {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void *handle;
  size_t size;
  int needsProxyProgress;
} ncclNetDeviceHandle_t;

#endif
