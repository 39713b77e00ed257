"""CTranslate2, the fastest maintained engine for Transformers on CPUs: conversion of models, and search."""
