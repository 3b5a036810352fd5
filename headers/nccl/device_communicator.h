/*
 * Requirements of kernels that use NCCL's device functions (facts: nccl_device/core.h of 2.28.7 to 2.30.7). Such
 * kernels receive ncclDevComm, a struct by value. Its fields change with the release, so only its size in bytes is
 * declared here.
 */
#ifndef MILLRACE_NCCL_DEVICE_COMMUNICATOR_H
#define MILLRACE_NCCL_DEVICE_COMMUNICATOR_H

#include <stdbool.h>
#include <stddef.h>

struct ncclDevComm;
struct ncclDevCommRequirements;

/* Peers that GIN connects to a rank: none, all, or the ranks of its rail. New in 2.29.7. */
typedef enum ncclGinConnectionType_t {
  NCCL_GIN_CONNECTION_NONE = 0,
  NCCL_GIN_CONNECTION_FULL = 1,
  NCCL_GIN_CONNECTION_RAIL = 2
} ncclGinConnectionType_t;

/* Executor of kernels' puts of a communicator: none, a CPU's proxy, the card alone, or GPI. */
typedef enum ncclGinType_t {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2,
  NCCL_GIN_TYPE_GDAKI = 3,
  NCCL_GIN_TYPE_GPI = 4
} ncclGinType_t;

/*
 * Result of ncclCommQueryProperties, as of 2.29.7. The first three fields describe the layout of the rest, as in
 * ncclConfig_t.
 */
typedef struct ncclCommProperties_t {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  ncclGinType_t ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  ncclGinType_t railedGinType;
} ncclCommProperties_t;

/* Size of ncclDevComm in bytes. */
#define MILLRACE_NCCL_DEV_COMM_BYTES_V22807 200
#define MILLRACE_NCCL_DEV_COMM_BYTES_V22907 224
#define MILLRACE_NCCL_DEV_COMM_BYTES_V23003 240

/* ncclDevCommRequirements of 2.28.7 and 2.28.9. Lists are linked; an empty list is null. */
typedef struct ncclDevCommRequirements_v28 {
  void *resourceRequirementsList;
  void *teamRequirementsList;
  bool lsaMultimem;
  int barrierCount;
  int lsaBarrierCount;
  int railGinBarrierCount;
  int lsaLLA2ABlockCount;
  int lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount;
  int ginSignalCount;
  int ginCounterCount;
} ncclDevCommRequirements_v28;

/* Size of ncclDevCommRequirements in bytes. 2.29 has only the first fields of 2.30. */
#define MILLRACE_NCCL_REQUIREMENTS_BYTES_V22902 72
#define MILLRACE_NCCL_REQUIREMENTS_BYTES_V22907 88

/*
 * ncclDevCommRequirements of 2.30. The first three fields describe the layout of the rest: its size in bytes,
 * ncclConfig_t's magic number, and NCCL_VERSION_CODE. The headers that compile the kernels determine this version, and
 * NCCL fills ncclDevComm in its layout. The two flags at the end are new in 2.30.7, and were padding before.
 */
typedef struct ncclDevCommRequirements_v30 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  void *resourceRequirementsList;
  void *teamRequirementsList;
  bool lsaMultimem;
  int barrierCount;
  int lsaBarrierCount;
  int railGinBarrierCount;
  int lsaLLA2ABlockCount;
  int lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount;
  int ginSignalCount;
  int ginCounterCount;
  ncclGinConnectionType_t ginConnectionType;
  bool ginExclusiveContexts;
  int ginQueueDepth;
  int ginTrafficClass;
  int worldGinBarrierCount;
  bool ginStrongSignalsRequired;
  bool ginVaSignalsRequired;
} ncclDevCommRequirements_v30;

#endif
