package org.millrace.bench.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.StringReader;
import java.util.List;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;

class ReportTest {

    /** Pattern of everything in a page that makes a browser request a resource. */
    private static final Pattern FETCH = Pattern.compile(
            "https?:|//[a-z]|src=|@import|url\\(|<link|<script[^>]*src|<iframe|<object", Pattern.CASE_INSENSITIVE);

    @Test
    void thePageIsWellFormedAndHasEverything() throws Exception {
        Document page = parse(HtmlReport.render(Sample.results(0.5, 0.5), null));
        String text = page.getDocumentElement().getTextContent();
        for (String wanted : List.of("get <acquire>", "without C", "4 KiB", "a note with <markup>",
                "one <of> \"them\" & another", "Round trip", "50 %")) {
            assertTrue(text.contains(wanted), wanted);
        }
        assertEquals(5, countClass(page, "circle"), "a dot for each side of each line");
        assertEquals(2, page.getElementsByTagName("polyline").getLength(), "a curve for each side of the distribution");
    }

    @Test
    void thePageAsksTheNetworkForNothing() {
        String page = HtmlReport.render(Sample.results(0.5, 0.5), List.of());
        assertFalse(FETCH.matcher(page).find(), () -> FETCH.matcher(page).results().toList().toString());
    }

    /** A run of seconds must not be mistaken for a measurement, on any page with its figures. */
    @Test
    void aSmokeRunSaysSo(@TempDir Path directory) throws Exception {
        Results results = Sample.results(0.5, 0.5);
        assertFalse(HtmlReport.render(results, null).contains("--smoke"), "not without reason");
        results.environment().put(Results.EFFORT, "smoke: seconds");
        assertTrue(parse(HtmlReport.render(results, null)).getDocumentElement()
                .getTextContent()
                .contains("A run with --smoke"));
        assertTrue(MarkdownTables.all(results).startsWith("**A run with --smoke"));
        ResultFile.write(results, directory.resolve("result.json"));
        assertTrue(Files.readString(directory.resolve("result.json")).contains("\"effort\": \"smoke: seconds\""));
        assertTrue(ResultFile.read(directory.resolve("result.json")).isSmoke());
    }

    /** The script of the page sorts rows by the numbers in these attributes. */
    @Test
    void rowsCarryTheirNumbers() throws Exception {
        String page = HtmlReport.render(Sample.results(0.5, 0.25), null);
        assertTrue(page.matches("(?s).*<div class=\"row\" data-java=\"0\\.5[0-9]*\" data-c=\"0\\.25[0-9]*\" "
                + "data-ratio=\"[12]\\.[0-9]+\">.*"), page);
        assertTrue(page.contains("id=\"filter\"") && page.contains("id=\"sort\""));
    }

    @Test
    void linksOfThePageLeadSomewhere() throws Exception {
        Document page = parse(HtmlReport.render(Sample.results(0.5, 0.5), null));
        NodeList links = page.getElementsByTagName("a");
        assertTrue(links.getLength() > 0);
        for (int i = 0; i < links.getLength(); i++) {
            String target = ((Element) links.item(i)).getAttribute("href").substring(1);
            NodeList headings = page.getElementsByTagName("h2");
            boolean found = false;
            for (int h = 0; h < headings.getLength(); h++) {
                found |= ((Element) headings.item(h)).getAttribute("id").equals(target);
            }
            assertTrue(found, target);
        }
    }

    @Test
    void aLineAboveTheGoalIsExplainedOrSaidNotToBe() {
        Results slow = Sample.results(0.5, 0.5);
        slow.add(Sample.line("unheard_of", 2, 1));
        assertTrue(HtmlReport.render(slow, null).contains("not explained yet"));
        assertFalse(HtmlReport.render(Sample.results(0.5, 0.5), null).contains("not explained yet"));
    }

    @Test
    void missesAreOnlyThoseBeyondNoiseAndResolution() {
        assertTrue(Sample.line("a", 1.2, 1).misses());
        assertFalse(Sample.line("a", 1.04, 1).misses());
        assertFalse(Sample.line("a", 0.015, 0.005).misses(), "a hundredth of a nanosecond is no access");
    }

    @Test
    void tablesOfAPageAreRenewedInPlace() {
        String page = "before\n<!-- table fences:native -->\nold\n<!-- end -->\nbetween $1\n<!-- table other:one "
                + "-->\nkept\n<!-- end -->\n"
                + "<!-- machine fences -->\nold\n<!-- end -->\n<!-- machine gpu -->\nanother machine\n<!-- "
                + "end -->\nafter\n";
        String renewed = MarkdownTables.renew(page, Sample.results(0.5, 0.25));
        assertFalse(renewed.contains("old"), renewed);
        assertTrue(renewed.contains("| 0.50 | 0.25 | 2.00 ("), renewed);
        assertTrue(renewed.contains("another machine") && renewed.contains("between $1") && renewed.contains("kept")
                && renewed.endsWith("after\n"), renewed);
        assertEquals(renewed, MarkdownTables.renew(renewed, Sample.results(0.5, 0.25)), "twice is once");
    }

    @Test
    void everyExplanationBelongsToALineThatExists() {
        assertNull(Explanations.of(Sample.line("unheard_of", 2, 1)));
        assertTrue(
                Explanations.of(new Line("crossings", "accesses", "instance.get_acquire", "", "", true, 0, List.of()))
                        .contains("segment"));
    }

    private static int countClass(Document page, String tag) {
        return page.getElementsByTagName(tag).getLength();
    }

    private static Document parse(String page) throws Exception {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new InputSource(new StringReader(page.replaceFirst("<!DOCTYPE html>", ""))));
    }
}
