"""Files of MATLAB and Octave, but for those in HDF5: `version5` of MATLAB's own format, and Octave's text.

`others` is what such files hold beside arrays of real numbers, `octave_types` what Octave calls it, also in HDF5.
"""
