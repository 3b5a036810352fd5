package org.millrace.cli.matrix;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * How to run a cell again on the same data.
 *
 * @param seed     of the run
 * @param settings that the command line set
 */
record RerunCommand(long seed, Map<String, String> settings) {

    /** What a shell leaves as it is. */
    private static final Pattern PLAIN = Pattern.compile("[\\w@%+=:,./-]+");

    /** The command line that selects this cell alone. */
    String command(CellResult result) {
        CellGroup group = result.group();
        List<String> words = new ArrayList<>(List.of("millrace", "matrix", "--seed", String.valueOf(seed),
                "--collective", result.cell().operation().label(), "--algorithm", group.algorithm(), "--transport",
                group.way().label(), "--protocol", group.protocol(), "--mode", group.mode().name(), "--ranks",
                String.valueOf(group.ranks()), "--processes", group.processes() ? "1" : "0"));
        settings.forEach((name, value) -> words.addAll(List.of("-D", name + "=" + value)));
        return String.join(" ", words.stream().map(RerunCommand::quoted).toList());
    }

    private static String quoted(String word) {
        return PLAIN.matcher(word).matches() ? word : "'" + word.replace("'", "'\\''") + "'";
    }
}
