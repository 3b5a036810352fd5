/**
 * Networks that reduce: what one can be asked for, and where others than Millrace's own come from. The packages below
 * have these: ranks that reduce for each other ({@code mesh}), and processes that do it for them ({@code aggregator}).
 */
@NullMarked
package org.millrace.collnet;

import org.jspecify.annotations.NullMarked;
