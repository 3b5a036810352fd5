package org.millrace.ffi;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.SequenceLayout;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The layout of a struct or union.
 *
 * @param bytes     size of the struct or union
 * @param alignment alignment of the struct or union, in bytes
 * @param fields    fields of the struct or union; each is followed by the fields of its type, and an array by its first
 *                  and last element
 */
record Layout(long bytes, long alignment, List<Field> fields) {

    /** Resource with the layouts of structs that jextract generates no class for, because no Java code uses them. */
    private static final String FILE = "layouts.txt";
    /** Classes of types, by the numbers of {@code __builtin_classify_type}. */
    private static final int POINTER = 5;
    private static final int REAL = 8;
    private static final int INTEGER = 1;

    /**
     * A field.
     *
     * @param path   the C expression of the field within its type
     * @param offset offset of the field in its type, in bytes
     * @param bytes  size of the field
     * @param kind   class of the field's type; 0 for a struct, a union or an array
     */
    record Field(String path, long offset, long bytes, int kind) {
    }

    /**
     * Returns the layouts in the resource. For each type the resource has a line for the type, then one line for each
     * field.
     */
    static SortedMap<String, Layout> recorded() throws IOException {
        SortedMap<String, Layout> all = new TreeMap<>();
        try (InputStream file = Layout.class.getResourceAsStream(FILE)) {
            Layout layout = null;
            for (String line : new String(file.readAllBytes(), StandardCharsets.UTF_8).lines().toList()) {
                String[] words = line.strip().split(" ");
                long first = Long.parseLong(words[1]);
                long second = Long.parseLong(words[2]);
                if (line.startsWith(" ")) {
                    layout.fields.add(new Field(words[0], first, second, Integer.parseInt(words[3])));
                } else {
                    layout = new Layout(first, second, new ArrayList<>());
                    all.put(words[0], layout);
                }
            }
        }
        return all;
    }

    static Layout of(GroupLayout group, long alignment) {
        List<Field> fields = new ArrayList<>();
        addMembers("", group, 0, fields);
        return new Layout(group.byteSize(), alignment, fields);
    }

    private static void addMembers(String prefix, GroupLayout group, long base, List<Field> fields) {
        for (MemoryLayout member : group.memberLayouts()) {
            if (!(member instanceof PaddingLayout)) {
                String name = member.name().orElseThrow();
                long offset = base + group.byteOffset(MemoryLayout.PathElement.groupElement(name));
                add(prefix + name, member, offset, fields);
            }
        }
    }

    private static void add(String path, MemoryLayout member, long offset, List<Field> fields) {
        int kind = switch (member) {
            case AddressLayout _ -> POINTER;
            case ValueLayout.OfFloat _ -> REAL;
            case ValueLayout.OfDouble _ -> REAL;
            case ValueLayout _ -> INTEGER;
            default -> 0;
        };
        fields.add(new Field(path, offset, member.byteSize(), kind));
        if (member instanceof GroupLayout nested) {
            addMembers(path + ".", nested, offset, fields);
        } else if (member instanceof SequenceLayout array) {
            // The first element proves the array's offset. The last element proves the array's length and stride.
            long stride = array.elementLayout().byteSize();
            for (long index : new TreeSet<>(List.of(0L, array.elementCount() - 1))) {
                add(path + "[" + index + "]", array.elementLayout(), offset + index * stride, fields);
            }
        }
    }

    /** Returns the names of the type's own fields. */
    List<String> fieldNames() {
        return fields.stream().map(Field::path).filter(path -> path.matches("\\w+")).toList();
    }
}
