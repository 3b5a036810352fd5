package org.millrace.cli.inspect;

import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.Version;
import org.millrace.trace.TraceLayout.CommunicatorFields;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.TracedRank;
import org.millrace.trace.TracedState;
import org.millrace.trace.Verdict;

/**
 * JSON document with verdicts and with the communicators of the inspected processes, see {@code why-json.md}. The
 * fields of NCCL's RAS have the names, types and nesting of RAS's JSON output since NCCL 2.28.7 (user guide, "RAS",
 * "JSON Output").
 */
final class WhyDocument {

    private static final int SCHEMA = 1;
    private static final DateTimeFormatter TIMESTAMP = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");
    /**
     * Number that RAS uses for an unknown process. It also stands for the GPU of a rank, because traces do not state
     * the GPU.
     */
    private static final int UNKNOWN = -1;
    /** {@code ncclRemoteError}, the value of {@code ncclCommGetAsyncError} after the loss of another rank. */
    private static final int REMOTE_ERROR = 6;

    private WhyDocument() {}

    /** @param seconds time taken to read the traces, in seconds */
    static Map<String, Object> of(List<List<TracedRank>> communicators, List<Verdict> verdicts, double seconds) {
        List<Map<String, Object>> all = communicators.stream().map(WhyDocument::communicator).toList();
        return Json.object("schema", SCHEMA, "millrace", Version.millrace(), "nccl_version", "", "cuda_runtime_version",
                0, "cuda_driver_version", 0, "timestamp", LocalDateTime.now().format(TIMESTAMP), "communicators_count",
                all.size(), "communicators", all, "ras",
                Json.object("collection_time_sec", seconds, "timeouts_count", 0), "verdicts",
                verdicts.stream().map(Verdict::json).toList());
    }

    /** Returns the document of one stall, which {@code --exec} passes to its command. */
    static Map<String, Object> of(Verdict verdict) {
        Map<String, Object> document = Json.object("schema", SCHEMA, "millrace", Version.millrace());
        document.putAll(verdict.json());
        return document;
    }

    private static Map<String, Object> communicator(List<TracedRank> members) {
        Map<Integer, TracedRank> byNumber = new TreeMap<>();
        int size = 0;
        for (TracedRank member : members) {
            if (member.rank() >= 0) {
                byNumber.putIfAbsent(member.rank(), member);
            }
            TracedCommunicator traced = member.communicator();
            size = Math.max(size, Math.max(member.rank() + 1, traced == null ? 0 : traced.size()));
        }
        List<Object> ranks = new ArrayList<>();
        List<Object> missing = new ArrayList<>();
        for (int number = 0; number < size; number++) {
            TracedRank member = byNumber.get(number);
            ProcessState state = member == null ? ProcessState.UNKNOWN : member.state();
            Map<String, Object> rank =
                    Json.object("rank", number, "host", member == null ? "unknown" : member.process().host(), "pid",
                            member == null ? UNKNOWN : member.process().identity().pid(), "cuda_dev", UNKNOWN,
                            "nvml_dev", UNKNOWN);
            if (member == null || state == ProcessState.DEAD || state.isStopped()) {
                rank.put("status",
                        Json.object("unresponsive", member != null, "considered_dead", state == ProcessState.DEAD));
                missing.add(rank);
            } else {
                rank.put("status", status(member.communicator()));
                rank.put("collective_counts", counts(member.communicator()));
                ranks.add(rank);
            }
        }
        TracedRank first = members.getFirst();
        return Json.object("hash", "0x" + Long.toHexString(first.hash()), "secondary_hash",
                "0x0:0x" + Long.toHexString(first.process().identity().pid()), "size", size, "ranks_count",
                ranks.size(), "missing_ranks_count", missing.size(), "ranks", ranks, "missing_ranks", missing);
    }

    private static Map<String, Object> status(@Nullable TracedCommunicator communicator) {
        boolean failed = communicator != null && communicator.state() == TracedState.FAILED;
        return Json.object("init_state", 0, "async_error", failed ? REMOTE_ERROR : 0, "finalize_called", false,
                "destroy_flag", false, "abort_flag", false);
    }

    private static Map<String, Long> counts(@Nullable TracedCommunicator communicator) {
        return communicator != null ? communicator.functions()
                : CommunicatorFields.FUNCTIONS.stream()
                        .collect(Collectors.toMap(name -> name, name -> 0L, (one, other) -> one, LinkedHashMap::new));
    }
}
