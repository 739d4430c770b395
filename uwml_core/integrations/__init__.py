"""Adapters to the trainers people already use, a module for each library.

Importing this package loads none of the libraries; importing a module of it needs the one it is named after.
"""
