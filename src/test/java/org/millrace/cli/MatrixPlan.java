package org.millrace.cli;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Pattern;
import org.millrace.Operation;
import org.millrace.config.Settings;

/**
 * All groups of cells. The plan is the same in every process, because it follows only from the command line.
 *
 * @param groups   groups in the order in which they run
 * @param seed     seed of data and samples
 * @param settings settings of the command line
 */
record MatrixPlan(List<CellGroup> groups, long seed, Map<String, String> settings) {

    static final List<String> ALGORITHMS = List.of("ring", "tree", "collnetdirect", "collnetchain");
    static final List<String> PROTOCOLS = List.of("LL", "LL128", "Simple");

    /** Text that needs no quotes in a shell. */
    private static final Pattern PLAIN = Pattern.compile("[\\w@%+=:,./-]+");

    /**
     * Selection of groups, as the command line requests it.
     *
     * @param sample number of possible groups to choose for each number of ranks. Groups with threads and with
     *               processes are chosen separately. 0 chooses all
     */
    record Selected(List<Operation> collectives, List<String> algorithms, List<TransportVariant> variants,
            List<String> protocols, List<CellGroup.Mode> modes, List<Integer> ranks, List<Boolean> processes,
            int sample) {
    }

    static MatrixPlan of(Selected selected, long seed, Map<String, String> settings) {
        Builder builder = new Builder(selected.collectives);
        Random random = new Random(seed);
        for (boolean processes : selected.processes) {
            for (int ranks : selected.ranks) {
                List<CellGroup> some = new ArrayList<>(builder.groups(selected, ranks, processes));
                if (selected.sample > 0) {
                    some.removeIf(group -> !group.mayRun());
                    Collections.shuffle(some, random);
                    some = some.subList(0, Math.min(selected.sample, some.size()));
                }
                builder.take(some);
            }
        }
        return new MatrixPlan(List.copyOf(builder.taken), seed, settings);
    }

    List<CellGroup> groups(int ranks, boolean processes) {
        return groups.stream().filter(group -> group.ranks() == ranks && group.processes() == processes).toList();
    }

    /** Returns the command line that runs only the given cell, with the same data. */
    String rerunCommand(CellResult result) {
        CellGroup group = result.group();
        List<String> words = new ArrayList<>(List.of("--seed", String.valueOf(seed), "--collective",
                result.cell().operation().label(), "--algorithm", group.algorithm(), "--transport",
                group.variant().label(), "--protocol", group.protocol(), "--mode", group.mode().name(), "--ranks",
                String.valueOf(group.ranks()), "--processes", group.processes() ? "1" : "0"));
        settings.forEach((name, value) -> words.addAll(List.of("-D", name + "=" + shown(name, value))));
        return "mvn -Pmatrix -Dmatrix.args=\"" + String.join(" ", words.stream().map(MatrixPlan::quoted).toList())
                + '"';
    }

    private static String shown(String name, String value) {
        return Settings.all().stream().anyMatch(setting -> setting.secret() && setting.name().equals(name)) ? "(hidden)"
                : value;
    }

    private static String quoted(String word) {
        return PLAIN.matcher(word).matches() ? word : "'" + word.replace("'", "'\\''") + "'";
    }

    /** Collects the groups, and numbers groups and cells. */
    private static final class Builder {

        private final List<Operation> collectives;
        private final List<CellGroup> taken = new ArrayList<>();
        private int cells;

        Builder(List<Operation> collectives) {
            this.collectives = collectives;
        }

        List<CellGroup> groups(Selected selected, int ranks, boolean processes) {
            List<CellGroup> groups = new ArrayList<>();
            for (TransportVariant variant : selected.variants) {
                for (String algorithm : variant.algorithms().stream().filter(selected.algorithms::contains).toList()) {
                    for (CellGroup.Mode mode : selected.modes) {
                        selected.protocols.forEach(protocol -> groups.add(
                                new CellGroup(0, ranks, processes, variant, algorithm, protocol, mode, List.of())));
                    }
                }
            }
            return groups;
        }

        void take(List<CellGroup> some) {
            for (CellGroup each : some) {
                List<CellGroup.Cell> own =
                        collectives.stream().map(operation -> new CellGroup.Cell(cells++, operation)).toList();
                taken.add(new CellGroup(taken.size(), each.ranks(), each.processes(), each.variant(), each.algorithm(),
                        each.protocol(), each.mode(), own));
            }
        }
    }
}
