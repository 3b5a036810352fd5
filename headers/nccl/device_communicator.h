/* What a kernel's use of NCCL's device functions asks of a communicator (facts: nccl_device/core.h of 2.28.7 to 2.30.7). What it is given, ncclDevComm, is a
 * struct by value whose fields change with the release; here it is only so many bytes. */
#ifndef MILLRACE_NCCL_DEVICE_COMMUNICATOR_H
#define MILLRACE_NCCL_DEVICE_COMMUNICATOR_H

#include <stdbool.h>
#include <stddef.h>

struct ncclDevComm;
struct ncclDevCommRequirements;

/* To whom GIN connects a rank: to nobody, to all, or to those of its rail. New in 2.29.7. */
typedef enum ncclGinConnectionType_t {
  NCCL_GIN_CONNECTION_NONE = 0,
  NCCL_GIN_CONNECTION_FULL = 1,
  NCCL_GIN_CONNECTION_RAIL = 2
} ncclGinConnectionType_t;

/* How kernels' puts of a communicator are carried out: not at all, by a CPU's proxy, by the card alone, or as GPI. */
typedef enum ncclGinType_t {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2,
  NCCL_GIN_TYPE_GDAKI = 3,
  NCCL_GIN_TYPE_GPI = 4
} ncclGinType_t;

/* What ncclCommQueryProperties tells, as of 2.29.7. The first three fields say how to read the rest, as those of ncclConfig_t do. */
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

/* Bytes of ncclDevComm. */
#define MILLRACE_NCCL_DEV_COMM_BYTES_V22807 200
#define MILLRACE_NCCL_DEV_COMM_BYTES_V22907 224
#define MILLRACE_NCCL_DEV_COMM_BYTES_V23003 240

/* ncclDevCommRequirements of 2.28.7 and 2.28.9. Lists are linked; null if there is nothing in them. */
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

/* Bytes of ncclDevCommRequirements: 2.29 has only the first fields of 2.30's. */
#define MILLRACE_NCCL_REQUIREMENTS_BYTES_V22902 72
#define MILLRACE_NCCL_REQUIREMENTS_BYTES_V22907 88

/* ncclDevCommRequirements of 2.30. The first three fields say how to read the rest: its bytes, ncclConfig_t's magic number, and the NCCL_VERSION_CODE of the
 * headers with which the kernels were compiled: ncclDevComm is filled as they lay it out. The two flags at the end are new in 2.30.7, and padding before. */
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
