/**
 * First programs, each a page long, which the tests run:
 * <ul>
 * <li>{@link com.example.millrace.AllReduce}: two processes add their numbers
 * <li>{@link com.example.millrace.Operands}: arrays, buffers and device memory, and stages
 * <li>{@link com.example.millrace.GroupsAndPlans}: operations that form a group, and operations that are repeated
 * <li>{@link com.example.millrace.OnDevice}: device memory and copies for a GPU
 * <li>{@link com.example.millrace.OtherTransport}: a transport from another jar
 * <li>{@link com.example.millrace.GinPing}: puts and signals that kernels start
 * <li>{@link com.example.millrace.Experts}: tokens to the ranks of their experts and back, as in DeepEP
 * </ul>
 */
package com.example.millrace;
