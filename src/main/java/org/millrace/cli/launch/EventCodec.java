package org.millrace.cli.launch;

import java.util.List;
import java.util.Optional;
import org.millrace.Route;

/**
 * Events as lines of text, which a rank in a process of its own writes to its standard output. Any other line there is
 * no event.
 */
final class EventCodec {

    private static final String PREFIX = "@millrace-perf\t";

    private EventCodec() {}

    static String encode(RankEvent event) {
        return PREFIX + switch (event) {
            case RankEvent.Joined joined -> fields("joined", joined.pid(), joined.host(), joined.device());
            case RankEvent.Measured measured -> fields("measured", measured.index(), measured.outOfPlace().nanos(),
                    measured.outOfPlace().wrong(), measured.inPlace().nanos(), measured.inPlace().wrong());
            case RankEvent.Routed routed -> fields("routed", routed.index(), routed.route().algorithm(),
                    routed.route().protocol(), routed.route().mode(), String.join("\n", routed.route().transports()));
            case RankEvent.Checked checked ->
                fields("checked", checked.cell(), checked.wrong(), checked.ran(), checked.refusal(), checked.failure());
            case RankEvent.Noted noted -> fields("noted", noted.text());
            case RankEvent.Befallen befallen -> fields("befallen", befallen.fault());
            case RankEvent.Finished finished -> "finished";
            case RankEvent.Failed failed -> fields("failed", failed.message(), failed.trace());
        };
    }

    /** The event in a line of a rank's output; empty if the line is something else. */
    static Optional<RankEvent> decode(int rank, String line) {
        if (!line.startsWith(PREFIX)) {
            return Optional.empty();
        }
        String[] field = line.substring(PREFIX.length()).split("\t", -1);
        return Optional.of(switch (field[0]) {
            case "joined" ->
                new RankEvent.Joined(rank, Long.parseLong(field[1]), unescape(field[2]), unescape(field[3]));
            case "measured" -> new RankEvent.Measured(rank, Integer.parseInt(field[1]), sample(field[2], field[3]),
                    sample(field[4], field[5]));
            case "routed" -> new RankEvent.Routed(rank, Integer.parseInt(field[1]), new Route(unescape(field[2]),
                    unescape(field[3]), unescape(field[4]), unescape(field[5]).lines().toList(), List.of()));
            case "checked" -> new RankEvent.Checked(rank, Integer.parseInt(field[1]), Long.parseLong(field[2]),
                    Integer.parseInt(field[3]), unescape(field[4]), unescape(field[5]));
            case "noted" -> new RankEvent.Noted(rank, unescape(field[1]));
            case "befallen" -> new RankEvent.Befallen(rank, unescape(field[1]));
            case "finished" -> new RankEvent.Finished(rank);
            case "failed" -> new RankEvent.Failed(rank, unescape(field[1]), unescape(field[2]), false);
            default ->
                throw new IllegalArgumentException("rank " + rank + " wrote an event that does not exist: " + line);
        });
    }

    private static CaseResult sample(String nanos, String wrong) {
        return new CaseResult(Double.parseDouble(nanos), Long.parseLong(wrong));
    }

    private static String fields(String kind, Object... values) {
        StringBuilder line = new StringBuilder(kind);
        for (Object value : values) {
            line.append('\t')
                    .append(value.toString()
                            .replace("\\", "\\\\")
                            .replace("\t", "\\t")
                            .replace("\n", "\\n")
                            .replace("\r", "\\r"));
        }
        return line.toString();
    }

    private static String unescape(String text) {
        StringBuilder plain = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c != '\\') {
                plain.append(c);
            } else {
                i++;
                plain.append(switch (text.charAt(i)) {
                    case 't' -> '\t';
                    case 'n' -> '\n';
                    case 'r' -> '\r';
                    default -> text.charAt(i);
                });
            }
        }
        return plain.toString();
    }
}
