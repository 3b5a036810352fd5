/* Everything that NCCL's host side, its proxies and its kernels share. */
#ifndef MILLRACE_NCCL_DEVICE_H
#define MILLRACE_NCCL_DEVICE_H

#include "nccl/algorithms.h"
#include "nccl/connection.h"
#include "nccl/gin.h"
#include "nccl/rccl.h"
#include "nccl/unpack.h"
#include "nccl/work.h"

#endif
