/* Types that NCCL passes to every plugin (facts: nccl_common.h of 2.28). */
#ifndef MILLRACE_NCCL_LOGGER_H
#define MILLRACE_NCCL_LOGGER_H

#include "nccl/types.h"

typedef enum ncclDebugLogLevel {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;

/* Bits of the logger's flags, as in NCCL_DEBUG_SUBSYS. */
typedef enum ncclDebugLogSubSys {
  NCCL_INIT = 0x1,
  NCCL_COLL = 0x2,
  NCCL_P2P = 0x4,
  NCCL_SHM = 0x8,
  NCCL_NET = 0x10,
  NCCL_GRAPH = 0x20,
  NCCL_TUNING = 0x40,
  NCCL_ENV = 0x80,
  NCCL_ALLOC = 0x100,
  NCCL_CALL = 0x200,
  NCCL_PROXY = 0x400,
  NCCL_NVLS = 0x800,
  NCCL_BOOTSTRAP = 0x1000,
  NCCL_REG = 0x2000,
  NCCL_PROFILE = 0x4000,
  NCCL_RAS = 0x8000,
  NCCL_ALL = ~0
} ncclDebugLogSubSys;

/* NCCL's logger is variadic. The arguments after fmt are printf arguments. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char *file,
                                  int line, const char *fmt, ...);

/*
 * The logger's named parameters. jextract omits variadic function pointers. A caller takes this descriptor, adds the
 * arguments of its format, and marks them as variadic.
 */
typedef void (*ncclDebugLoggerFixed_t)(ncclDebugLogLevel level, unsigned long flags,
                                       const char *file, int line, const char *fmt);

/* Kinds of a network plugin's own profiler events. */
typedef enum ncclProfilerNetEvent {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
  ncclProfilerNetEventUpdate = 2,
  ncclProfilerNetEventUpdateAndStop = 3
} ncclProfilerNetEvent;

typedef ncclResult_t (*ncclProfilerCallback_t)(void **eHandle, int type, void *pHandle,
                                               int64_t pluginId, void *extData);

/* Operations that NCCL passes to a tuner. The order differs from NCCL's public functions. */
typedef enum ncclFunc_t {
  ncclFuncBroadcast = 0,
  ncclFuncReduce = 1,
  ncclFuncAllGather = 2,
  ncclFuncReduceScatter = 3,
  ncclFuncAllReduce = 4,
  ncclFuncSendRecv = 5,
  ncclFuncSend = 6,
  ncclFuncRecv = 7,
  ncclFuncAlltoAll = 8,
  ncclFuncScatter = 9,
  ncclFuncGather = 10
} ncclFunc_t;

#endif
