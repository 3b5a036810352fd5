/* Common parts of all versions of the network plugin's table (facts: plugin/nccl_net.h). */
#ifndef MILLRACE_NCCL_NET_COMMON_H
#define MILLRACE_NCCL_NET_COMMON_H

#include "nccl/algorithms.h"
#include "nccl/logger.h"

/* Size of the handle that listen fills and NCCL passes to the peer's connect, in bytes. */
#define NCCL_NET_HANDLE_MAXSIZE 128
/* Maximum number of requests in flight on one communicator. */
#define NCCL_NET_MAX_REQUESTS 32
/* Maximum of maxP2pBytes and maxCollBytes, and maximum size of a single transfer. */
#define NCCL_MAX_NET_SIZE_BYTES 1099511627776L
#define MAX_NET_SIZE 1073741824L

/* Kinds of memory: bits of ptrSupport, and the type argument of regMr. */
#define NCCL_PTR_HOST 0x1
#define NCCL_PTR_CUDA 0x2
#define NCCL_PTR_DMABUF 0x4

/* Hints that NCCL passes in place of a request to isend and irecv. */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION 0x1
#define NCCL_NET_MULTI_REQUEST 0x2

#define NCCL_NET_MR_FLAG_FORCE_SO 0x1
#define NCCL_NET_TRAFFIC_CLASS_UNDEF -1
#define NCCL_NET_ATTR_UNDEF -1

/* Maximum number of physical devices in a virtual device: up to v11, and since v12. */
#define MILLRACE_NET_MAX_DEVS_PER_NIC_V9 4
#define NCCL_NET_MAX_DEVS_PER_NIC_V12 8

#endif
