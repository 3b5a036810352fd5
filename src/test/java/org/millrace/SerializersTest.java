package org.millrace;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Serializers by type. */
class SerializersTest {

    private enum Color {
        RED, GREEN
    }

    private record Point(int x, double y) {
    }

    private record All(boolean a, byte b, short c, char d, int e, long f, float g, double h, Integer i, String text,
            Color color, Point point, List<Point> points, List<List<String>> nested) {
    }

    private record Tree(String name, List<Tree> children) {
    }

    private record Positive(int value) {
        Positive {
            if (value <= 0) {
                throw new IllegalStateException("not positive: " + value);
            }
        }
    }

    private record Foreign(int number, Thread thread) {
    }

    private static <T> T copy(Serializer<T> serializer, T value) {
        return serializer.deserialize(serializer.serialize(value));
    }

    private static void refused(String text, Runnable call) {
        String message = assertThrows(IllegalArgumentException.class, call::run).getMessage();
        assertTrue(message.contains(text), message);
    }

    @Test
    void recordsHaveComponentsOfEachType() {
        All all = new All(true, (byte) -1, (short) -2, 'é', Integer.MIN_VALUE, Long.MAX_VALUE, -0f, Double.NaN, 7, "ü",
                Color.GREEN, new Point(1, 2.5), List.of(new Point(3, 4), new Point(5, 6)),
                List.of(List.of(), List.of("", "a")));
        assertEquals(all, copy(Serializer.of(All.class), all));
    }

    @Test
    void aRecordMayContainItsOwnType() {
        Tree tree = new Tree("a", List.of(new Tree("b", List.of()), new Tree("c", List.of(new Tree("d", List.of())))));
        assertEquals(tree, copy(Serializer.of(Tree.class), tree));
    }

    @Test
    void primitivesArraysEnumsAndLists() {
        assertEquals(42, copy(Serializer.of(Integer.class), 42));
        assertEquals(Color.RED, copy(Serializer.of(Color.class), Color.RED));
        assertArrayEquals(new byte[] {1, 2}, copy(Serializer.of(byte[].class), new byte[] {1, 2}));
        assertEquals(List.of(1L, -1L), copy(Serializer.listOf(Serializer.of(Long.class)), List.of(1L, -1L)));
        assertEquals(List.of(), copy(Serializer.listOf(Serializer.STRING), List.of()));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"00", "00000005", "7fffffff00", "ffffffff", "0000000400000001", "00000004000000010000000100",
                    "0000000400000001000000084004000000000000" + "00000000"})
    void bytesOfAnotherTypeAreRefused(String hex) {
        refused("do all ranks use the same serializer?",
                () -> Serializer.of(Point.class).deserialize(java.util.HexFormat.of().parseHex(hex)));
    }

    @Test
    void theConstructorChecksTheValues() {
        byte[] zero = Serializer.of(Positive.class).serialize(new Positive(1));
        zero[zero.length - 1] = 0;
        refused("the record Positive refuses its values: java.lang.IllegalStateException: not positive: 0",
                () -> Serializer.of(Positive.class).deserialize(zero));
        refused("Color has no constant 'BLUE': do all ranks use the same serializer?",
                () -> Serializer.of(Color.class).deserialize(Serializer.STRING.serialize("BLUE")));
    }

    @Test
    void bytesOfAnotherSizeAreNamed() {
        refused("Integer has 4 bytes, and 3 were sent: do all ranks use the same serializer?",
                () -> Serializer.of(Integer.class).deserialize(new byte[3]));
        refused("the record Point has 2 components, and 0 were sent: do all ranks use the same serializer?",
                () -> Serializer.of(Point.class).deserialize(new byte[0]));
        refused("the 3 bytes of a record or list end within a part: do all ranks use the same serializer?",
                () -> Serializer.of(Point.class).deserialize(new byte[3]));
    }

    @Test
    void typesWithoutASerializerAreNamed() {
        refused("lists of these. For another type, or a record that contains it, use Serializer.of(toBytes, fromBytes)",
                () -> Serializer.of(Foreign.class));
        refused("Foreign.thread: java.lang.Thread has no serializer", () -> Serializer.of(Foreign.class));
        refused("Object: java.lang.Object has no serializer", () -> Serializer.of(Object.class));
        String message = assertThrows(NullPointerException.class,
                () -> Serializer.of(Tree.class).serialize(new Tree(null, List.of()))).getMessage();
        assertEquals("Tree.name is null", message);
    }
}
