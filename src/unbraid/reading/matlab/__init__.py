"""Files of MATLAB and Octave: `version5` of MATLAB's own format, `hdf5`, which others write as well, and Octave's text.

`others` is what such files hold beside arrays of real numbers, `octave_types` what Octave calls it.
"""
