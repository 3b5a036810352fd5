/* The tables through which NCCL calls a plugin. */
#ifndef MILLRACE_NCCL_PLUGIN_H
#define MILLRACE_NCCL_PLUGIN_H

#include "nccl/gin_v12.h"
#include "nccl/gin_v13.h"
#include "nccl/gin_v14.h"
#include "nccl/gin_v15.h"
#include "nccl/net_v12.h"
#include "nccl/profiler.h"
#include "nccl/rma_v17.h"
#include "nccl/tuner.h"

#endif
