"""Scales workloads by what their pods use: the controller of HorizontalPodAutoscalers.

Reads autoscalers, Pods, the scale of what they are for, and measurements from whichever of the
metrics APIs are there; writes scales, and the status of autoscalers. Nothing it reads of usage is
kept: a metrics API that does not answer is a condition, never a reason to scale.
"""
