package org.millrace.cli.perf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import org.millrace.DataType;
import org.millrace.cli.check.CollectiveCall;
import org.millrace.cli.check.Reduction;
import org.millrace.config.ValueTypes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Arguments that are names: one, or, of types and reductions, several with commas between or {@code all}. */
final class Selection {

    private Selection() {}

    /** Element types. */
    record Types(List<DataType> values) {
    }

    /** Reductions. */
    record Reductions(List<Reduction> values) {
    }

    /** Types by NCCL's name (float) or ours (float32). */
    static final class TypesConverter implements ITypeConverter<Types> {
        @Override
        public Types convert(String text) {
            List<String> labels = Arrays.stream(DataType.values()).map(DataType::label).toList();
            return new Types(select(text, List.of(DataType.values()), labels,
                    name -> type -> type.label().equalsIgnoreCase(name) || type.name().equalsIgnoreCase(name)));
        }
    }

    /** Reductions by NCCL's name. */
    static final class ReductionsConverter implements ITypeConverter<Reductions> {
        @Override
        public Reductions convert(String text) {
            List<String> labels = Arrays.stream(Reduction.values()).map(Reduction::toString).toList();
            return new Reductions(select(text, List.of(Reduction.values()), labels,
                    name -> reduction -> reduction.name().equalsIgnoreCase(name)));
        }
    }

    /** One collective. */
    static final class CollectiveConverter implements ITypeConverter<CollectiveCall> {
        @Override
        public CollectiveCall convert(String text) {
            try {
                return ValueTypes.choices(CollectiveCall.class).parse(text);
            } catch (IllegalArgumentException unknown) {
                throw new TypeConversionException(
                        "there is no '" + text + "'; allowed: " + ValueTypes.choices(CollectiveCall.class).allowed());
            }
        }
    }

    private interface Match<T> {
        Predicate<T> of(String name);
    }

    private static <T> List<T> select(String text, List<T> all, List<String> labels, Match<T> match) {
        if (text.equalsIgnoreCase("all")) {
            return all;
        }
        List<T> selected = new ArrayList<>();
        for (String name : text.split(",")) {
            selected.add(all.stream()
                    .filter(match.of(name.strip()))
                    .findFirst()
                    .orElseThrow(() -> new TypeConversionException("there is no '" + name.strip()
                            + "'; allowed: all, or one or more of " + String.join(", ", labels))));
        }
        return selected;
    }
}
