package org.millrace.cli.perf;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.millrace.Route;

/** How one operation travelled, as its ranks tell: each sees its own side only. */
final class RankRoutes {

    private final List<Route> told = new ArrayList<>();

    void add(Route route) {
        told.add(route);
    }

    /** All sides as one: what differs between ranks is named with a plus between. Empty if no rank told. */
    Optional<Route> together() {
        if (told.isEmpty()) {
            return Optional.empty();
        }
        List<String> transports =
                told.stream().flatMap(route -> route.transports().stream()).sorted().distinct().toList();
        return Optional
                .of(new Route(each(Route::algorithm), each(Route::protocol), each(Route::mode), transports, List.of()));
    }

    private String each(Function<Route, String> part) {
        return told.stream()
                .map(part)
                .collect(Collectors.toCollection(TreeSet::new))
                .stream()
                .collect(Collectors.joining("+"));
    }

    /** In one line. */
    static String text(Route route) {
        String how = route.algorithm() + ", " + route.protocol() + ", " + route.mode();
        return route.transports().isEmpty() ? how : how + ", over " + String.join(", ", route.transports());
    }
}
