"""An export under the load of many clients."""
