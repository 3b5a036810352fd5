/*
 * Replaces libnccl and records every call as the C compiler received it. With STUB_OLD it exports only the functions of
 * NCCL 2.7.
 */
#include "nccl/api.h"
#include "record.h"

static int stub_comms;
static int stub_async_code;
static int stub_async_times;
static ncclComm_t *stub_pending;
static ncclComm_t stub_child;

/* Makes the next queries for an asynchronous error return a code. Then pending calls are complete. */
void stub_async(int code, int times) {
  stub_async_code = code;
  stub_async_times = times;
}

#ifndef STUB_OLD
static int stub_version = 22809;

/* Sets the release that the stub reports. */
void stub_release(int version) { stub_version = version; }
#endif

static ncclComm_t new_comm(void) { return (ncclComm_t)(0xc0000L + 0x100L * ++stub_comms); }

static const char *hex(const void *bytes, size_t count, char *text) {
  for (size_t i = 0; i < count; i++) {
    sprintf(text + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
  }
  return text;
}

static const char *config_text(const ncclConfig_t *c, char *text) {
  if (!c) {
    return strcpy(text, "null");
  }
  sprintf(text, "{%zu %x %u blocking=%d cga=%d min=%d max=%d net=%s split=%d class=%d name=%s collnet=%d cta=%d shrink=%d nvls=%d channels=%d nvlink=%d graphs=%d contexts=%d peers=%d ordering=%d}",
          c->size, c->magic, c->version, c->blocking, c->cgaClusterSize, c->minCTAs, c->maxCTAs, c->netName ? c->netName : "-", c->splitShare,
          c->trafficClass, c->commName ? c->commName : "-", c->collnetEnable, c->CTAPolicy, c->shrinkShare, c->nvlsCTAs, c->nChannelsPerNetPeer,
          c->nvlinkCentricSched, c->graphUsageMode, c->numRmaCtx, c->maxP2pPeers, c->graphStreamOrdering);
  return text;
}

ncclResult_t ncclGetVersion(int *version) {
  CALL("ncclGetVersion", " ");
#ifdef STUB_OLD
  *version = 2708;
#else
  *version = stub_version;
#endif
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  stub_record("ncclGetErrorString", " %d", result);
  return result == ncclSystemError ? "unhandled system error" : "some error";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  CALL("ncclGetUniqueId", " ");
  for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) {
    id->internal[i] = (char)(i * 7 + 3);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
  char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
  CALL("ncclCommInitRank", " %d %s %d", nranks, hex(&id, sizeof(id), text), rank);
  *comm = new_comm();
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devices) {
  CALL("ncclCommInitAll", " %d %d %d", ndev, devices[0], devices[ndev - 1]);
  for (int i = 0; i < ndev; i++) {
    comm[i] = new_comm();
  }
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  CALL("ncclCommDestroy", " %p", (void *)comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  stub_record("ncclCommAbort", " %p", (void *)comm);
  stub_unblock();
  return stub_answer("ncclCommAbort");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  CALL("ncclCommGetAsyncError", " %p", (void *)comm);
  if (stub_async_times > 0) {
    stub_async_times--;
    *error = stub_async_code;
    return ncclSuccess;
  }
  if (stub_pending) {
    __atomic_store_n(stub_pending, stub_child, __ATOMIC_RELEASE);
    stub_pending = NULL;
  }
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  CALL("ncclCommCount", " %p", (void *)comm);
  *count = 4;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  CALL("ncclCommCuDevice", " %p", (void *)comm);
  *device = 1;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  CALL("ncclCommUserRank", " %p", (void *)comm);
  *rank = 3;
  return ncclSuccess;
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclReduce", " %p %p %zu %d %d %d %p %p", send, receive, count, type, op, root, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclBroadcast", " %p %p %zu %d %d %p %p", send, receive, count, type, root, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclAllReduce", " %p %p %zu %d %d %p %p", send, receive, count, type, op, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclReduceScatter", " %p %p %zu %d %d %p %p", send, receive, count, type, op, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclAllGather", " %p %p %zu %d %p %p", send, receive, count, type, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclSend", " %p %zu %d %d %p %p", buffer, count, type, peer, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclRecv", " %p %zu %d %d %p %p", buffer, count, type, peer, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
  CALL("ncclGroupStart", " ");
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  CALL("ncclGroupEnd", " ");
  return ncclSuccess;
}

#ifndef STUB_OLD

const char *ncclGetLastError(ncclComm_t comm) {
  stub_record("ncclGetLastError", " %p", (void *)comm);
  return "net.cc:17 connect to 10.0.0.7 failed\nCall to connect returned Connection refused\n";
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  char text[2 * NCCL_UNIQUE_ID_BYTES + 1], options[1024];
  stub_record("ncclCommInitRankConfig", " %d %s %d %s", nranks, hex(&id, sizeof(id), text), rank, config_text(config, options));
  int code = stub_answer("ncclCommInitRankConfig");
  if (code == ncclSuccess || code == ncclInProgress) {
    *comm = new_comm();
  }
  return code;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nid, ncclUniqueId *ids, ncclConfig_t *config) {
  char first[2 * NCCL_UNIQUE_ID_BYTES + 1], last[2 * NCCL_UNIQUE_ID_BYTES + 1], options[1024];
  CALL("ncclCommInitRankScalable", " %d %d %d %s %s %s", nranks, rank, nid, hex(&ids[0], sizeof(*ids), first), hex(&ids[nid - 1], sizeof(*ids), last),
       config_text(config, options));
  *comm = new_comm();
  return ncclSuccess;
}

/* Stores the new communicator. If the call continues asynchronously, NCCL stores it when the call is complete. */
static ncclResult_t make_child(const char *function, ncclComm_t *out, int none) {
  int code = stub_answer(function);
  if (code == ncclInProgress) {
    stub_pending = out;
    stub_child = new_comm();
  } else if (code == ncclSuccess) {
    *out = none ? NULL : new_comm();
  }
  return code;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config) {
  char options[1024];
  stub_record("ncclCommSplit", " %p %d %d %s", (void *)comm, color, key, config_text(config, options));
  return make_child("ncclCommSplit", out, color == NCCL_SPLIT_NOCOLOR);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *out, ncclConfig_t *config, int flags) {
  char options[1024];
  stub_record("ncclCommShrink", " %p %d %d %d %s %d", (void *)comm, excluded[0], excluded[count - 1], count, config_text(config, options), flags);
  return make_child("ncclCommShrink", out, 0);
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) {
  CALL("ncclCommGetUniqueId", " %p", (void *)comm);
  memset(id, 0x5a, sizeof(*id));
  return ncclSuccess;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *out, ncclConfig_t *config) {
  char text[2 * NCCL_UNIQUE_ID_BYTES + 1], options[1024];
  stub_record("ncclCommGrow", " %p %d %s %d %s", (void *)comm, nranks, id ? hex(id, sizeof(*id), text) : "null", rank, config_text(config, options));
  return make_child("ncclCommGrow", out, 0);
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *p) {
  CALL("ncclCommQueryProperties", " %p {%zu %x %u}", (void *)comm, p->size, p->magic, p->version);
  *p = (ncclCommProperties_t){p->size, p->magic, p->version, 1, 2, 3, 4, true, false, NCCL_GIN_TYPE_GDAKI, 5, true, 77};
  return ncclSuccess;
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  CALL("ncclCommSuspend", " %p %d", (void *)comm, flags);
  return ncclSuccess;
}

ncclResult_t ncclCommResume(ncclComm_t comm) {
  CALL("ncclCommResume", " %p", (void *)comm);
  return ncclSuccess;
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value) {
  CALL("ncclCommMemStats", " %p %d", (void *)comm, stat);
  *value = stat == ncclStatGpuMemSuspended ? 1 : 0x500000000L + stat;
  return ncclSuccess;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **out) {
  CALL("ncclWinGetUserPtr", " %p %p", (void *)comm, (void *)window);
  *out = (void *)0x710000001000L;
  return ncclSuccess;
}

ncclResult_t ncclPutSignal(const void *buffer, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset, int signal, int context,
                           unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclPutSignal", " %p %zu %d %d %p %zu %d %d %u %p %p", buffer, count, type, peer, (void *)window, offset, signal, context, flags, (void *)comm,
       (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclSignal", " %d %d %d %u %p %p", peer, signal, context, flags, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t *all, ncclComm_t comm, cudaStream_t stream) {
  ncclWaitSignalDesc_t *last = &all[count - 1];
  CALL("ncclWaitSignal", " %d {%d %d %d %d} %p %p", count, last->opCnt, last->peer, last->sigIdx, last->ctx, (void *)comm, (void *)stream);
  return ncclSuccess;
}

/* Names of the stub's parameters. A parameter's handle is the name of its type, and NCCL_TEXT is a text. */
static const char *stub_keys[] = {"I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "NCCL_TEXT"};

ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key) {
  CALL("ncclParamBind", " %s", key);
  for (int i = 0; i < 9; i++) {
    if (strcmp(key, stub_keys[i]) == 0) {
      *out = (ncclParamHandle_t)stub_keys[i];
      return ncclSuccess;
    }
  }
  return ncclInvalidArgument;
}

#define GETTER(suffix, type) \
  ncclResult_t ncclParamGet##suffix(ncclParamHandle_t handle, type *out) { \
    CALL("ncclParamGet" #suffix, " "); \
    if (strcmp((const char *)handle, #suffix) != 0) { \
      return ncclInvalidArgument; \
    } \
    *out = (type)-2; \
    return ncclSuccess; \
  }
GETTER(I8, int8_t)
GETTER(I16, int16_t)
GETTER(I32, int32_t)
GETTER(I64, int64_t)
GETTER(U8, uint8_t)
GETTER(U16, uint16_t)
GETTER(U32, uint32_t)
GETTER(U64, uint64_t)

ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char **out) {
  CALL("ncclParamGetStr", " ");
  *out = "some text";
  return strcmp((const char *)handle, "NCCL_TEXT") == 0 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclParamGet(ncclParamHandle_t handle, void *out, int most, int *length) {
  CALL("ncclParamGet", " %s %d", (const char *)handle, most);
  memcpy(out, "abc", 3);
  *length = 3;
  return ncclSuccess;
}

ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *length) {
  CALL("ncclParamGetParameter", " %s", key);
  if (strncmp(key, "NCCL_", 5) != 0) {
    return ncclInvalidArgument;
  }
  *value = "17";
  *length = 2;
  return ncclSuccess;
}

ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *length) {
  CALL("ncclParamGetAllParameterKeys", " ");
  *table = stub_keys;
  *length = 9;
  return ncclSuccess;
}

void ncclParamDumpAll(void) { stub_record("ncclParamDumpAll", " "); }

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  CALL("ncclCommRevoke", " %p %d", (void *)comm, flags);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  CALL("ncclCommFinalize", " %p", (void *)comm);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **out, size_t size) {
  CALL("ncclMemAlloc", " %zu", size);
  *out = (void *)0x710000000000L;
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void *address) {
  CALL("ncclMemFree", " %p", address);
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **out) {
  CALL("ncclCommRegister", " %p %p %zu", (void *)comm, buffer, size);
  *out = (void *)0x8e9L;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *registration) {
  CALL("ncclCommDeregister", " %p %p", (void *)comm, registration);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size, ncclWindow_t *window, int flags) {
  CALL("ncclCommWindowRegister", " %p %p %zu %d", (void *)comm, buffer, size, flags);
  *window = (ncclWindow_t)0x3170L;
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  CALL("ncclCommWindowDeregister", " %p %p", (void *)comm, (void *)window);
  return ncclSuccess;
}

/* Reads the requirements, and fills the struct, in the layout of the reported release. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements, struct ncclDevComm *devComm) {
  if (stub_version < 22900) {
    const ncclDevCommRequirements_v28 *r = (const void *)requirements;
    CALL("ncclDevCommCreate", " %p {barriers=%d force=%d contexts=%d signals=%d counters=%d}", (void *)comm, r->barrierCount, r->ginForceEnable,
         r->ginContextCount, r->ginSignalCount, r->ginCounterCount);
  } else {
    const ncclDevCommRequirements_v30 *r = (const void *)requirements;
    ncclDevCommRequirements_v30 all = {0};
    memcpy(&all, r, r->size);
    CALL("ncclDevCommCreate", " %p {%zu %x %u barriers=%d force=%d contexts=%d signals=%d counters=%d connection=%d class=%d strong=%d address=%d}",
         (void *)comm, all.size, all.magic, all.version, all.barrierCount, all.ginForceEnable, all.ginContextCount, all.ginSignalCount, all.ginCounterCount,
         all.ginConnectionType, all.ginTrafficClass, all.ginStrongSignalsRequired, all.ginVaSignalsRequired);
  }
  char *bytes = (char *)devComm;
  int size = stub_version < 22907 ? 200 : stub_version < 23000 ? 224 : 240;
  memset(bytes, 0xdc, size);
  int *rank = (int *)(bytes + (stub_version < 23000 ? 0 : 8));
  rank[0] = 1;
  rank[1] = 2;
  if (stub_version < 22907) {
    bytes[136] = 4;
  } else {
    *(uint32_t *)(bytes + 200) = 4;
  }
  return ncclSuccess;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *devComm) {
  CALL("ncclDevCommDestroy", " %p %x", (void *)comm, *(const int *)devComm);
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm) {
  char text[17];
  CALL("ncclRedOpCreatePreMulSum", " %s %d %d %p", residence == ncclScalarHostImmediate ? hex(scalar, 8, text) : "device", type, residence, (void *)comm);
  *op = (ncclRedOp_t)(ncclNumOps + 2);
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  CALL("ncclRedOpDestroy", " %d %p", op, (void *)comm);
  return ncclSuccess;
}

ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclAlltoAll", " %p %p %zu %d %p %p", send, receive, count, type, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclGather(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclGather", " %p %p %zu %d %d %p %p", send, receive, count, type, root, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclScatter(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  CALL("ncclScatter", " %p %p %zu %d %d %p %p", send, receive, count, type, root, (void *)comm, (void *)stream);
  return ncclSuccess;
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
  CALL("ncclGroupSimulateEnd", " %zu %x %u %.1f", info->size, info->magic, info->version, info->estimatedTime);
  info->estimatedTime = 12.5f;
  return ncclSuccess;
}

#endif
