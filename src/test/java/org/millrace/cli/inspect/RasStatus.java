package org.millrace.cli.inspect;

import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.millrace.cli.base.Json;

/**
 * Parser of the JSON output of NCCL's RAS. The only source of the parser is NCCL's user guide (RAS, JSON Output). The
 * parser requires each field of the guide's sample with the sample's type, and ignores all other fields.
 */
public record RasStatus(List<Communicator> communicators) {

    /** A communicator, with its ranks that answered and its missing ranks. */
    public record Communicator(String hash, String secondaryHash, long size, List<Rank> ranks, List<Missing> missing) {
    }

    public record Rank(long rank, String host, long pid, long asyncError, Map<?, ?> counts) {
    }

    public record Missing(long rank, String host, long pid, boolean unresponsive, boolean dead) {
    }

    public static RasStatus parse(String json) {
        Map<?, ?> root = (Map<?, ?>) Json.read(json);
        text(root, "nccl_version");
        number(root, "cuda_runtime_version");
        number(root, "cuda_driver_version");
        LocalDateTime.parse(text(root, "timestamp"), DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss"));
        List<Communicator> communicators = new ArrayList<>();
        for (Map<?, ?> each : list(root, "communicators")) {
            communicators.add(communicator(each));
        }
        require(number(root, "communicators_count") == communicators.size(), "communicators_count");
        Map<?, ?> ras = map(root, "ras");
        require(field(ras, "collection_time_sec", Number.class).doubleValue() >= 0, "collection_time_sec");
        number(ras, "timeouts_count");
        return new RasStatus(communicators);
    }

    private static Communicator communicator(Map<?, ?> from) {
        List<Rank> ranks = new ArrayList<>();
        Set<Long> numbers = new HashSet<>();
        for (Map<?, ?> each : list(from, "ranks")) {
            Map<?, ?> status = map(each, "status");
            number(status, "init_state");
            for (String flag : List.of("finalize_called", "destroy_flag", "abort_flag")) {
                field(status, flag, Boolean.class);
            }
            Map<?, ?> counts = map(each, "collective_counts");
            for (String function : List.of("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")) {
                require(number(counts, function) >= 0, function);
            }
            gpu(each);
            ranks.add(new Rank(number(each, "rank"), text(each, "host"), number(each, "pid"),
                    number(status, "async_error"), counts));
        }
        List<Missing> missing = new ArrayList<>();
        for (Map<?, ?> each : list(from, "missing_ranks")) {
            Map<?, ?> status = map(each, "status");
            gpu(each);
            missing.add(new Missing(number(each, "rank"), text(each, "host"), number(each, "pid"),
                    field(status, "unresponsive", Boolean.class), field(status, "considered_dead", Boolean.class)));
        }
        ranks.forEach(rank -> numbers.add(rank.rank));
        missing.forEach(rank -> numbers.add(rank.rank));
        long size = number(from, "size");
        require(number(from, "ranks_count") == ranks.size(), "ranks_count");
        require(number(from, "missing_ranks_count") == missing.size(), "missing_ranks_count");
        require(numbers.size() == size && ranks.size() + missing.size() == size, "size");
        return new Communicator(text(from, "hash"), text(from, "secondary_hash"), size, ranks, missing);
    }

    private static void gpu(Map<?, ?> rank) {
        number(rank, "cuda_dev");
        number(rank, "nvml_dev");
    }

    private static <T> T field(Map<?, ?> from, String name, Class<T> type) {
        require(type.isInstance(from.get(name)), name + " is " + from.get(name));
        return type.cast(from.get(name));
    }

    private static long number(Map<?, ?> from, String name) {
        return field(from, name, Long.class);
    }

    private static String text(Map<?, ?> from, String name) {
        return field(from, name, String.class);
    }

    private static Map<?, ?> map(Map<?, ?> from, String name) {
        return field(from, name, Map.class);
    }

    private static List<Map<?, ?>> list(Map<?, ?> from, String name) {
        List<Map<?, ?>> all = new ArrayList<>();
        for (Object each : field(from, name, List.class)) {
            all.add((Map<?, ?>) each);
        }
        return all;
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalArgumentException("not RAS's output: " + what);
        }
    }
}
