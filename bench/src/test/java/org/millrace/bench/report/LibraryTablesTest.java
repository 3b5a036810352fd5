package org.millrace.bench.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibraryTablesTest {

    @TempDir
    Path directory;

    @Test
    void eachLibraryHasMedianAndQuartilesOfItsRounds() throws IOException {
        LibraryTables tables = read("""
                Sockets\t2\ttrip\t64\t30.0\t3.0
                Sockets\t2\tchecked\t1024\t0\t0
                Mine\t2\tsum\t1048576\t4000\t200
                Sockets\t2\ttrip\t64\t10.0\t1.0
                Sockets\t2\tchecked\t1024\t2\t0
                Sockets\t2\ttrip\t64\t20.0\t2.0
                """);
        assertEquals("""

                | Round trip, 2 ranks, µs | | 64 B |
                | --- | --- | --- |
                | Sockets | at first | 20.0 (15.0, 25.0) |
                | | later | 2.00 (1.50, 2.50) |

                | All-reduce, 2 ranks, µs | | 1 MiB |
                | --- | --- | --- |
                | Mine | at first | 4,000 (4,000, 4,000) |
                | | later | 200 (200, 200) |

                2,048 bytes compared, 2 wrong elements
                """, tables.toString());
    }

    @Test
    void aLineOfAnotherFormIsReported() {
        IOException exception = assertThrows(IOException.class, () -> read("Sockets\t2\ttrip\n"));
        assertEquals(
                directory.resolve("lines.tsv")
                        + ": not 'library, ranks, operation, bytes, at first, later': Sockets\t2\ttrip",
                exception.getMessage());
    }

    private LibraryTables read(String lines) throws IOException {
        return new LibraryTables(Files.writeString(directory.resolve("lines.tsv"), lines));
    }
}
